// The speakers of the corpus, and the part that each belongs to. Each speaker is in one part only,
// whatever the engine, so that nothing learnt from a voice is measured on it. The voices of
// `test/fixtures/amd` are in the first two parts.

import type { Engine } from './clips.ts';

export const parts = ['first', 'second', 'third', 'fourth', 'fifth', 'unread'] as const;
export type Part = (typeof parts)[number];

export type SyntheticVoice = {
  readonly kind: 'synthetic';
  readonly part: Part;
  readonly language: string;
  readonly engine: Engine;
  readonly voice: string;
  readonly encoding?: string;
};

/** Recordings of one speaker, or of one team: a package and its files. */
export type RecordedVoice = {
  readonly kind: 'recorded';
  readonly part: Part;
  readonly package: string;
  /**
   * `people`: short phrases and acted talk. `prompts`: an exchange's prompts, by the names that
   * Asterisk gives them. `both`: talk that is also joined to what a machine says, because a
   * listener without a recogniser does not hear the words.
   */
  readonly says: 'people' | 'prompts' | 'both';
  readonly files: RegExp;
};

function synthetic(
  part: Part,
  engine: Engine,
  language: string,
  voices: readonly string[],
  encoding?: string,
): SyntheticVoice[] {
  return voices.map((voice) => ({
    kind: 'synthetic',
    part,
    language,
    engine,
    voice,
    ...(encoding === undefined ? {} : { encoding }),
  }));
}

export const syntheticVoices: readonly SyntheticVoice[] = [
  ...synthetic('first', 'espeak', 'en', ['en-us+m3', 'en-gb+m7']),
  ...synthetic('first', 'espeak', 'de', ['de+m1', 'de+m5']),
  ...synthetic('first', 'flite', 'en', ['kal16', 'awb']),
  ...synthetic('first', 'festival', 'it', ['lp_diphone'], 'ISO-8859-1'),
  ...synthetic('first', 'festival', 'cs', ['czech_dita', 'czech_ph'], 'ISO-8859-2'),
  ...synthetic('first', 'festival', 'fi', ['hy_fi_mv_diphone'], 'ISO-8859-1'),
  ...synthetic('second', 'espeak', 'fr', ['fr+f2', 'fr+f5']),
  ...synthetic('second', 'espeak', 'es', ['es+f3', 'es-419+f4']),
  ...synthetic('second', 'flite', 'en', ['slt']),
  ...synthetic('second', 'festival', 'it', ['pc_diphone'], 'ISO-8859-1'),
  ...synthetic('second', 'festival', 'cs', ['czech_machac'], 'ISO-8859-2'),
  ...synthetic('second', 'festival', 'ru', ['msu_ru_nsh_clunits']),
  ...synthetic('third', 'flite', 'en', ['rms']),
  ...synthetic('third', 'festival', 'en', ['ked_diphone']),
  ...synthetic('third', 'festival', 'fi', ['suo_fi_lj_diphone'], 'ISO-8859-1'),
  ...synthetic('third', 'festival', 'cs', ['czech_krb'], 'ISO-8859-2'),
  ...synthetic('third', 'festival', 'ca', ['upc_ca_ona_hts'], 'ISO-8859-1'),
  ...synthetic('third', 'festival', 'hi', ['hindi_NSK_diphone']),
  ...synthetic('fourth', 'gnuspeech', 'en', ['male', 'female', 'large_child']),
  ...synthetic('fourth', 'espeak', 'en', ['en-gb+f1', 'en-us+klatt4']),
  ...synthetic('fourth', 'espeak', 'it', ['it+m2']),
  ...synthetic('fourth', 'espeak', 'ru', ['ru+m4']),
  ...synthetic('fourth', 'espeak', 'fi', ['fi+m6']),
  ...synthetic('fifth', 'espeak', 'en', ['en-us+Annie', 'en-gb-scotland+edward']),
  ...synthetic('fifth', 'espeak', 'de', ['de+steph']),
  ...synthetic('fifth', 'espeak', 'fr', ['fr+gustave']),
  ...synthetic('fifth', 'espeak', 'es', ['es-419+Alicia']),
  ...synthetic('fifth', 'espeak', 'cs', ['cs+linda']),
  ...synthetic('fifth', 'espeak', 'ca', ['ca+pablo']),
  ...synthetic('fifth', 'espeak', 'hi', ['hi+anika']),
  ...synthetic('unread', 'espeak', 'en', ['en-us+Andy', 'en-gb+belinda', 'en-gb-x-rp+quincy']),
  ...synthetic('unread', 'espeak', 'en', ['en-us+Michael', 'en-029+shelby']),
  ...synthetic('unread', 'espeak', 'de', ['de+norbert', 'de+sandro']),
  ...synthetic('unread', 'espeak', 'fr', ['fr+Jacky', 'fr-be+adam']),
  ...synthetic('unread', 'espeak', 'es', ['es+antonio', 'es-419+Andrea']),
  ...synthetic('unread', 'espeak', 'it', ['it+Mario']),
  ...synthetic('unread', 'espeak', 'ru', ['ru+Denis']),
  ...synthetic('unread', 'espeak', 'cs', ['cs+david']),
  ...synthetic('unread', 'espeak', 'fi', ['fi+kaukovalta']),
  ...synthetic('unread', 'espeak', 'hi', ['hi+travis']),
];

function recorded(
  part: Part,
  says: RecordedVoice['says'],
  name: string,
  files: RegExp,
): RecordedVoice {
  return { kind: 'recorded', part, package: name, says, files };
}

const tuxPaint = 'tuxpaint-stamps-default';
const puzzle = 'fillets-ng-data';
const tuberling = 'ktuberling-data';
const hedgehogs = 'hedgewars-data';
const letters = 'klettres-data';
const queen = 'flight-of-the-amazon-queen';
const sky = 'beneath-a-steel-sky';
const warzone = 'warzone2100-data';
const nexuiz = 'nexuiz-data';
const megaGlest = 'megaglest-data';
const syllables = 'gcin-voice';
const arena = 'openarena-data';
const aliens = 'ufoai-sound';

export const recordedVoices: readonly RecordedVoice[] = [
  recorded('first', 'prompts', 'asterisk-core-sounds-en-wav', /en_US_f_Allison|\/en/),
  recorded('first', 'prompts', 'asterisk-core-sounds-es-wav', /\/es/),
  recorded('first', 'prompts', 'asterisk-core-sounds-it-wav', /\/it/),
  recorded('first', 'people', `${puzzle}-cs`, /\/cs\/[a-z0-9]+-m-/),
  recorded('first', 'people', `${puzzle}-cs`, /\/cs\/[a-z0-9]+-v-/),
  recorded('first', 'people', tuxPaint, /_desc_be\.ogg$/),
  recorded('first', 'people', tuxPaint, /_desc_el\.ogg$/),
  recorded('first', 'people', tuxPaint, /_desc_fr\.ogg$/),
  recorded('first', 'people', tuxPaint, /_desc_da\.ogg$/),
  recorded('first', 'people', tuberling, /sounds\/(de|pt|uk)\//),
  recorded('second', 'prompts', 'asterisk-core-sounds-fr-wav', /\/fr/),
  recorded('second', 'prompts', 'asterisk-core-sounds-ru-wav', /\/ru/),
  recorded('second', 'prompts', 'asterisk-prompt-es-co', /\.gsm$/),
  recorded('second', 'people', tuxPaint, /_desc_bg\.ogg$/),
  recorded('second', 'people', tuxPaint, /_desc_ro\.ogg$/),
  recorded('second', 'people', tuxPaint, /_desc_es\.ogg$/),
  recorded('second', 'people', tuxPaint, /_desc_lt\.ogg$/),
  recorded('second', 'people', tuberling, /sounds\/(sv|it|gl)\//),
  recorded('second', 'people', tuberling, /sounds\/(sr|ru|ga)\//),
  recorded('third', 'prompts', 'asterisk-prompt-it-menardi-wav', /\.wav$/),
  recorded('third', 'prompts', 'asterisk-prompt-fr-armelle', /\.gsm$/),
  recorded('third', 'people', `${puzzle}-nl`, /\/nl\/[a-z0-9]+-m-/),
  recorded('third', 'people', `${puzzle}-nl`, /\/nl\/[a-z0-9]+-v-/),
  recorded('third', 'people', tuxPaint, /_desc_ca\.ogg$/),
  recorded('third', 'people', tuxPaint, /_desc_ru\.ogg$/),
  recorded('third', 'people', tuberling, /sounds\/(en|fi|nn)\//),
  recorded('third', 'people', tuberling, /sounds\/(sl|nl|lt)\//),
  recorded('fourth', 'both', hedgehogs, /voices\/(British|Pirate)\//),
  recorded('fourth', 'both', hedgehogs, /voices\/(Classic|Default)\//),
  recorded('fourth', 'both', hedgehogs, /voices\/Default_es\//),
  recorded('fourth', 'both', hedgehogs, /voices\/Default_pl\//),
  recorded('fourth', 'both', hedgehogs, /voices\/Default_ru\//),
  recorded('fourth', 'both', hedgehogs, /voices\/Default_uk\//),
  recorded('fourth', 'both', hedgehogs, /voices\/(HillBilly|Mobster)\//),
  recorded('fourth', 'both', hedgehogs, /voices\/(Russian|Russian_pl)\//),
  recorded('fourth', 'both', hedgehogs, /voices\/Surfer\//),
  recorded('fourth', 'both', tuxPaint, /_desc_(nl|pt_BR)\.(ogg|wav)$/),
  recorded('fourth', 'both', tuberling, /sounds\/wa\//),
  recorded('fourth', 'both', tuberling, /sounds\/(nds|es|ro)\//),
  recorded('fourth', 'both', letters, /\/(he|hu|nb|tn)\//),
  recorded('fifth', 'both', queen, /\/(JOE\d{4}|[0-9A-FX]{6}J)\d*\.mp3$/),
  recorded('fifth', 'both', queen, /\/0[^/]{5}P\d\.mp3$/),
  recorded('fifth', 'both', queen, /\/[1-4][^/]{5}P\d\.mp3$/),
  recorded('fifth', 'both', queen, /\/[5-9][^/]{5}P\d\.mp3$/),
  recorded('fifth', 'both', queen, /\/C[12][^/]*\.mp3$/),
  recorded('fifth', 'both', queen, /\/C[67][^/]*\.mp3$/),
  recorded('fifth', 'both', sky, /\/5[01]\d{3}\.wav$/),
  recorded('fifth', 'both', sky, /\/5[23]\d{3}\.wav$/),
  recorded('fifth', 'both', sky, /\/5[45]\d{3}\.wav$/),
  recorded('fifth', 'both', warzone, /audio\/memressp\//),
  recorded('fifth', 'both', warzone, /audio\/tutorial\//),
  recorded('fifth', 'both', warzone, /audio\/(vtoltalk|trnsppil|taunts)\//),
  recorded('fifth', 'both', nexuiz, /sound\/tutorial\//),
  recorded('fifth', 'both', nexuiz, /player\/(soldier|marine|specop|pyria-skadi|fricka)\/coms\//),
  recorded(
    'fifth',
    'both',
    megaGlest,
    /factions\/(persian|indian|norsemen)\/units\/.*(ack|select|move)/,
  ),
  recorded('fifth', 'both', syllables, /\/3\.ogg$/),
  recorded('unread', 'both', arena, /voices\/rott\//),
  recorded('unread', 'both', arena, /voices\/festivoxmale\//),
  recorded('unread', 'people', aliens, /sound\/(soldiers|civilians)\//),
];
