// Swedish. ../phrase-lists.ts describes the lists.

import type { Phrases } from '../phrase-lists.ts';

export const swedish: Phrases = {
  voicemail: [
    'lämna ett meddelande efter',
    'tala in ett meddelande',
    'tala in ditt meddelande',
    'efter tonen',
    'efter pipet',
    'efter signalen',
    'kommit till … röstbrevlåda',
    'kommit till … telefonsvarare',
    'kommit till … mobilsvar',
    'abonnentens röstbrevlåda',
    'abonnenten kan inte nås',
    'abonnenten du söker',
    'numret har ingen abonnent',
    'numret du har ringt är inte i bruk',
    'numret är inte i bruk',
    'du är placerad i kö',
    'ditt samtal är viktigt för oss',
    'tryck ett',
    'tryck 1',
    'denna röstbrevlåda är full',
    'detta är ett inspelat meddelande',
  ],
  callScreening: ['spela in ditt namn och', 'om du spelar in ditt namn'],
  asksForHelp: [
    'vad kan jag hjälpa dig med',
    'vad kan jag hjälpa till med',
    'hur kan jag hjälpa',
    'vad kan jag stå till tjänst med',
    'kan jag hjälpa dig',
    'vem talar jag med',
    'vem är det',
    'vad gäller det',
  ],
};
