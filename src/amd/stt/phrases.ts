// The phrase lists by language. Feel free to edit them: src/amd/stt/phrases contains one file per
// language. The lists contain what machines on the phone say (but people who pick up don't), and
// the questions with which people offer help. Each line is a phrase as it's spoken. `…` stands for
// up to six words, and `#` for a digit or its name. Case, accents and punctuation are ignored.

import type { Phrases } from './phrase-lists.ts';
import { catalan } from './phrases/catalan.ts';
import { czech } from './phrases/czech.ts';
import { dutch } from './phrases/dutch.ts';
import { english } from './phrases/english.ts';
import { finnish } from './phrases/finnish.ts';
import { french } from './phrases/french.ts';
import { german } from './phrases/german.ts';
import { hindi } from './phrases/hindi.ts';
import { italian } from './phrases/italian.ts';
import { polish } from './phrases/polish.ts';
import { portuguese } from './phrases/portuguese.ts';
import { russian } from './phrases/russian.ts';
import { spanish } from './phrases/spanish.ts';
import { swedish } from './phrases/swedish.ts';
import { turkish } from './phrases/turkish.ts';

export const phrasesByLanguage: Readonly<Record<string, Phrases>> = {
  en: english,
  de: german,
  fr: french,
  es: spanish,
  it: italian,
  pt: portuguese,
  nl: dutch,
  pl: polish,
  sv: swedish,
  tr: turkish,
  ca: catalan,
  cs: czech,
  fi: finnish,
  hi: hindi,
  ru: russian,
};
