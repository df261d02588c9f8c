// Czech. ../phrase-lists.ts describes the lists.

import type { Phrases } from '../phrase-lists.ts';

export const czech: Phrases = {
  voicemail: [
    'zanechte vzkaz po',
    'zanechte zprávu po',
    'zanechte vzkaz prosím po',
    'po zaznění tónu',
    'po zaznění signálu',
    'po pípnutí',
    'zde je hlasová schránka',
    'do hlasové schránky účastníka',
    'hlasová schránka účastníka',
    'volaný účastník',
    'volaná stanice',
    'účastník je dočasně',
    'schránka účastníka je plná',
    'volané číslo není',
    'volané číslo neexistuje',
    'váš hovor je pro nás',
    'stiskněte jedničku',
    'stiskněte 1',
  ],
  callScreening: ['nahrajte své jméno', 'nahrajte vaše jméno'],
  asksForHelp: [
    'jak vám mohu pomoci',
    'jak vám můžu pomoct',
    'co pro vás mohu udělat',
    's čím vám mohu pomoci',
    'přejete si',
    'kdo volá',
    'u telefonu',
  ],
};
