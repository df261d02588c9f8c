// Swedish. What the lists are for is said in ../phrase-lists.ts.

import type { Phrases } from '../phrase-lists.ts';

export const swedish: Phrases = {
  voicemail: [
    'lämna … meddelande',
    'tala in … meddelande',
    'efter tonen',
    'efter pipet',
    'efter signalen',
    'röstbrevlåda',
    'telefonsvarare',
    'mobilsvar',
    'kan inte ta ditt samtal',
    'kan inte svara just nu',
    'kan inte nås för tillfället',
    'abonnenten kan inte nås',
    'röstbrevlådan är full',
    'brevlådan är full',
    'numret … inte i bruk',
    'numret har ingen abonnent',
    'numret du har ringt',
    'vänta kvar i telefonen',
    'var god dröj',
    'du är placerad i kö',
  ],
  callScreening: [
    'samtalsfilter',
    'samtalsfiltrering',
    'säg ditt namn och',
    'ange ditt namn och',
    'ditt namn och anledningen',
    'ditt namn och varför',
    'om personen är tillgänglig',
    'om den här personen är tillgänglig',
  ],
  asksForHelp: [
    'vad kan jag hjälpa dig med',
    'vad kan jag hjälpa till med',
    'hur kan jag hjälpa',
    'vad kan jag stå till tjänst med',
    'kan jag hjälpa dig',
  ],
};
