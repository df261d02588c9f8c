// Dutch. What the lists are for is said in ../phrase-lists.ts.

import type { Phrases } from '../phrase-lists.ts';

export const dutch: Phrases = {
  voicemail: [
    'laat … bericht achter',
    'laat … boodschap achter',
    'spreek … in na',
    'bericht in te spreken',
    'na de piep',
    'na de pieptoon',
    'na de toon',
    'na het signaal',
    'voicemail',
    'antwoordapparaat',
    'het nummer dat u heeft gebeld',
    'het door u gekozen nummer',
    'kan de telefoon … niet opnemen',
    'voicemail … is vol',
    'mailbox is vol',
    'dit nummer is niet in gebruik',
    'nummer is niet aangesloten',
    'niet bereikbaar',
    'blijft u aan de lijn',
    'blijf aan de lijn',
    'al onze medewerkers',
  ],
  callScreening: [
    'gespreksfilter',
    'oproepen screenen',
    'zeg je naam en',
    'zeg uw naam en',
    'noem uw naam en',
    'je naam en de reden',
    'uw naam en de reden',
    'of deze persoon beschikbaar is',
  ],
  asksForHelp: [
    'waarmee kan ik u helpen',
    'waar kan ik u mee helpen',
    'kan ik u helpen',
    'wat kan ik voor u doen',
  ],
};
