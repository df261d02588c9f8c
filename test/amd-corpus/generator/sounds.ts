// Other sounds in a home and on the line, and the part that each belongs to: recordings from Debian
// packages, and models of appliances and of beeps. A model is a device. It has its own pitches and
// cadence, and it is in one part only.

import type { Part } from './voices.ts';

export type RecordedSound = {
  readonly part: Part;
  readonly package: string;
  readonly files: RegExp;
  readonly kind: 'household' | 'music';
};

const tuxPaint = 'tuxpaint-stamps-default';

function household(part: Part, name: string, files: RegExp): RecordedSound {
  return { part, package: name, files, kind: 'household' };
}

function music(part: Part, name: string, files: RegExp): RecordedSound {
  return { part, package: name, files, kind: 'music' };
}

export const recordedSounds: readonly RecordedSound[] = [
  household(
    'first',
    'sound-theme-freedesktop',
    /(alarm|bell|complete|message|phone-inc|dialog|device)/,
  ),
  household('first', 'gnome-shell-pomodoro-data', /(bell|timer|clock|birds)/),
  household('first', tuxPaint, /animals\/(birds|mammals\/[a-l])[^_]*\.ogg$/),
  household('first', 'lomiri-sounds', /(Alarm|Blip|Noti|Positive|Wind|Xylo|Sparkle)/),
  household('second', 'oxygen-sounds', /(Im-|Error|Warning|Message|Question|Phone)/),
  household('second', 'deepin-sound-theme', /(dialog|message|device|complete|power)/),
  household('second', 'blinken', /\.wav$/),
  household(
    'second',
    tuxPaint,
    /animals\/(mammals\/[m-z]|insects|fish|amphib|reptiles)[^_]*\.ogg$/,
  ),
  household('second', 'unknown-horizons', /(bell|chapel|sheep|smith|lumber|stonemason|waves)/),
  household('third', tuxPaint, /(household|vehicles|hobbies|town|medical)\/[^_]*\.ogg$/),
  household('third', 'linphone-common', /(oldphone|toy|incoming)/),
  household('third', 'lmms-common', /(misc|effects|instruments)\/.*\.ogg$/),
  household('third', 'frozen-bubble-data', /(hurry|noh|pause|rebound|snore|typewriter|stick|menu)/),
  music('first', 'asterisk-moh-opsound-wav', /macroform/),
  music('first', 'lomiri-sounds', /(Celestial|Melody|Harp|Koto|Soul)/),
  music('second', 'asterisk-moh-opsound-wav', /(manolo|reno)/),
  music('second', 'frozen-bubble-data', /(mainzik|introzik)/),
  music('third', 'unknown-horizons', /(tavern|golden|newfrontier|gameplay|irelands|Morning)/),
  music('third', 'colobot-common-sounds', /music0/),
  household('fourth', 'minetest-data', /(door|glass|water|metal|chest|fire|furnace|wood)/),
  household('fourth', 'hedgewars-data', /Sounds\/[^/]*\.ogg$/),
  household('fourth', 'yaru-theme-sound', /\.oga$/),
  household('fourth', 'psi-plus-sounds', /\.wav$/),
  household('fourth', 'eiskaltdcpp-sounds', /\.wav$/),
  music('fourth', 'hedgewars-data', /Music\/.*\.ogg$/),
  household('fifth', 'lincity-ng-data', /sounds\/.*\.wav$/),
  household('fifth', 'minetest-mod-homedecor', /\.ogg$/),
  household('fifth', 'pysiogame', /\.ogg$/),
  household('fifth', 'bucklespring-data', /\.wav$/),
  household('fifth', 'bzflag-data', /\.wav$/),
  household('fifth', 'freedroidrpg-data', /effects\/(item_sounds\/)?[^/]*\.ogg$/),
  household('fifth', 'wesnoth-1.16-data', /(wolf|bat|horse|ambient|gold|chest|gryphon|miss)/),
  music('fifth', 'openclonk-data', /Music\.ocg\/.*\.ogg$/),
  music('fifth', 'fillets-ng-data', /music\/.*\.ogg$/),
  household('unread', 'warmux-data', /sound\/default\/(misc|weapons)\//),
  household('unread', 'ufoai-sound', /sound\/(doors|impact|ambience|geoscape)\//),
  household('unread', 'etw-data', /\.wav$/),
  music('unread', 'warmux-data', /voices\/theme\d\.ogg$/),
];

/**
 * Sines with their share of harmonics, switched on and off a number of times. `decayMs`: the sound
 * rings away, as a chime does.
 */
export type Appliance = {
  readonly part: Part;
  readonly name: string;
  readonly hz: readonly number[];
  readonly onMs: number;
  readonly offMs: number;
  readonly times: number;
  readonly harmonics: number;
  readonly decayMs?: number;
  readonly dbfs: number;
};

function appliance(
  part: Part,
  name: string,
  hz: readonly number[],
  [onMs, offMs, times]: readonly [number, number, number],
  { harmonics = 0.1, decayMs, dbfs = -24 }: Partial<Appliance> = {},
): Appliance {
  const decay = decayMs === undefined ? {} : { decayMs };
  return { part, name, hz, onMs, offMs, times, harmonics, dbfs, ...decay };
}

/** If a device has several pitches, they sound in turn. */
export const appliances: readonly Appliance[] = [
  appliance('first', 'microwave', [2_050], [450, 550, 4]),
  appliance('first', 'oven-timer', [2_730], [110, 120, 8]),
  appliance('first', 'doorbell', [659, 523], [620, 60, 1], { harmonics: 0.3, decayMs: 350 }),
  appliance('first', 'dishwasher', [1_046, 1_318, 1_568], [220, 90, 1], { harmonics: 0.2 }),
  appliance('first', 'fridge', [2_350], [180, 700, 5], { harmonics: 0.02 }),
  appliance('first', 'lorry', [1_250], [480, 480, 5], { harmonics: 0.4 }),
  appliance('first', 'washing-machine', [1_480], [700, 900, 3], { harmonics: 0.05 }),
  appliance('first', 'cuckoo', [740, 587], [300, 350, 2], { harmonics: 0.15, decayMs: 220 }),
  appliance('second', 'microwave', [1_975], [950, 800, 3]),
  appliance('second', 'kitchen-timer', [2_100], [70, 70, 12], { harmonics: 0.3 }),
  appliance('second', 'doorbell', [784, 622, 523], [520, 40, 1], { harmonics: 0.35, decayMs: 300 }),
  appliance('second', 'washing-machine', [880, 1_108, 1_318, 1_760], [260, 30, 1]),
  appliance('second', 'fridge', [1_960], [120, 880, 5], { harmonics: 0.02 }),
  appliance('second', 'smoke-alarm', [3_100], [500, 500, 3], { dbfs: -16 }),
  appliance('second', 'kettle', [2_250], [350, 250, 3], { harmonics: 0.04 }),
  appliance('second', 'seat-belt', [690], [600, 400, 4], { harmonics: 0.3, decayMs: 400 }),
  appliance('third', 'microwave', [2_180], [600, 500, 3]),
  appliance('third', 'oven-timer', [2_000], [150, 100, 6]),
  appliance('third', 'doorbell', [587, 466], [700, 80, 1], { harmonics: 0.25, decayMs: 420 }),
  appliance('third', 'dishwasher', [988, 1_175, 1_480, 1_175], [240, 60, 1], { harmonics: 0.12 }),
  appliance('third', 'fridge', [2_500], [220, 780, 4], { harmonics: 0.02 }),
  appliance('third', 'dryer', [1_300], [550, 650, 4], { harmonics: 0.5 }),
  appliance('third', 'coffee-maker', [2_300], [250, 350, 3], { harmonics: 0.05 }),
  appliance('third', 'clock', [415, 523], [800, 200, 2], { harmonics: 0.3, decayMs: 600 }),
  appliance('fourth', 'microwave', [2_000], [750, 450, 4], { harmonics: 0.15 }),
  appliance('fourth', 'oven-timer', [2_400], [90, 60, 12]),
  appliance('fourth', 'doorbell', [698, 554], [560, 120, 1], { harmonics: 0.4, decayMs: 260 }),
  appliance('fourth', 'dishwasher', [1_760], [500, 1_000, 3], { harmonics: 0.08 }),
  appliance('fourth', 'fridge', [1_880], [300, 600, 4], { harmonics: 0.05 }),
  appliance('fourth', 'dryer', [440, 554, 659, 880], [180, 40, 1], { harmonics: 0.2 }),
  appliance('fourth', 'lorry', [1_000], [550, 550, 4], { harmonics: 0.45 }),
  appliance('fourth', 'thermometer', [2_700], [160, 340, 4], { harmonics: 0.02, dbfs: -30 }),
  appliance('fifth', 'microwave', [2_120], [650, 650, 3], { harmonics: 0.08 }),
  appliance('fifth', 'oven-timer', [2_560], [130, 90, 9]),
  appliance('fifth', 'doorbell', [880, 698], [600, 90, 1], { harmonics: 0.3, decayMs: 300 }),
  appliance('fifth', 'washing-machine', [1_319, 1_046, 784], [250, 60, 1], { harmonics: 0.15 }),
  appliance('fifth', 'fridge', [1_780], [250, 750, 5], { harmonics: 0.04 }),
  appliance('fifth', 'lift', [1_175, 932], [500, 60, 1], { harmonics: 0.25, decayMs: 450 }),
  appliance('fifth', 'lorry', [1_130], [500, 600, 4], { harmonics: 0.4 }),
  appliance('fifth', 'air-conditioner', [2_640], [120, 400, 2], { harmonics: 0.03, dbfs: -28 }),
  appliance('unread', 'microwave', [1_925], [550, 480, 4], { harmonics: 0.12 }),
  appliance('unread', 'oven-timer', [2_200], [100, 150, 8]),
  appliance('unread', 'doorbell', [740, 622], [580, 70, 1], { harmonics: 0.35, decayMs: 380 }),
  appliance('unread', 'washing-machine', [1_175, 1_568, 1_397], [300, 50, 1], { harmonics: 0.1 }),
  appliance('unread', 'fridge', [2_150], [200, 800, 5], { harmonics: 0.03 }),
  appliance('unread', 'kettle', [1_650], [400, 300, 3], { harmonics: 0.06 }),
  appliance('unread', 'lorry', [1_190], [520, 520, 4], { harmonics: 0.35 }),
  appliance('unread', 'smoke-alarm', [3_000], [450, 450, 3], { dbfs: -18 }),
];

/**
 * `together`: the pitches sound at once. Otherwise each sounds for its share of the time. `sweep`:
 * the pitch moves from the first to the last.
 */
export type BeepModel = {
  readonly part: Part;
  readonly hz: readonly number[];
  readonly ms: number;
  readonly dbfs: number;
  readonly way: 'together' | 'in turn' | 'sweep' | 'decaying' | 'square';
};

function beeps(part: Part, rows: readonly string[]): BeepModel[] {
  return rows.map((row) => {
    const [hz = '', ms = '', dbfs = '', ...way] = row.split(' ');
    return {
      part,
      hz: hz.split('+').map(Number),
      ms: Number(ms),
      dbfs: Number(dbfs),
      way: (way.join(' ') || 'together') as BeepModel['way'],
    };
  });
}

/** Pitch, length and level of the beeps of answering machines and mailboxes. */
export const beepModels: readonly BeepModel[] = [
  ...beeps('first', [
    '1000 500 -12',
    '1400 300 -14',
    '425 250 -14',
    '440+480 600 -16',
    '620 150 -16',
    '830 90 -16',
    '1100 1000 -18',
    '941 200 -14',
    '600+1600 400 -14 sweep',
    '850 180 -26',
    '1500+1500 300 -14 in turn',
    '2000 160 -20',
    '750 700 -22 decaying',
    '500 400 -16 square',
    '1275 350 -34',
    '400 900 -14',
  ]),
  ...beeps('second', [
    '800 250 -12',
    '425 400 -16',
    '350 500 -14',
    '620 800 -18',
    '1320 120 -14',
    '1633 350 -16',
    '440 1200 -14',
    '980+1300 500 -14',
    '1200+700 350 -16 sweep',
    '900 100 -16',
    '700+1050 400 -16 in turn',
    '2100 300 -18',
    '1050 500 -18 decaying',
    '660 300 -16 square',
    '1150 250 -36',
    '480 300 -16',
  ]),
  ...beeps('third', [
    '1250 450 -14',
    '425 300 -12',
    '440 250 -16',
    '700 160 -14',
    '840 80 -14',
    '1760 200 -18',
    '550 600 -16',
    '480+620 800 -18',
    '400+2000 300 -14 sweep',
    '1050 150 -24',
    '660+880 500 -16 in turn',
    '1900 500 -22',
    '920 600 -16 decaying',
    '450 350 -14 square',
    '1380 300 -37',
    '350+440 700 -16',
  ]),
  ...beeps('fourth', [
    '1004 750 -13',
    '425 200 -15',
    '440 400 -14',
    '520 450 -15',
    '650 200 -16',
    '780 120 -15',
    '1209 250 -18',
    '1550 600 -20',
    '400+450 500 -16',
    '900+1350 300 -15',
    '1800+900 400 -15 sweep',
    '980 220 -27',
    '1046+1318 450 -16 in turn',
    '1850 350 -20',
    '1200 800 -17 decaying',
    '800 300 -15 square',
  ]),
  ...beeps('fifth', [
    '1010 600 -13',
    '425 350 -15',
    '450 250 -15',
    '560 350 -16',
    '680 180 -15',
    '870 110 -15',
    '1336 300 -17',
    '1477 500 -19',
    '350+450 450 -16',
    '770+1155 350 -15',
    '2000+1000 350 -16 sweep',
    '1120 240 -28',
    '880+1174 400 -16 in turn',
    '1950 300 -19',
    '1080 700 -17 decaying',
    '740 350 -15 square',
  ]),
  ...beeps('unread', [
    '990 550 -13',
    '425 280 -15',
    '455 320 -16',
    '480 500 -14',
    '600 220 -15',
    '720 140 -15',
    '1180 400 -17',
    '1420 900 -19',
    '440+620 500 -16',
    '850+1275 320 -15',
    '500+1800 380 -16 sweep',
    '1060 200 -29',
    '784+988 420 -16 in turn',
    '1880 280 -20',
    '960 650 -17 decaying',
    '580 320 -15 square',
  ]),
];
