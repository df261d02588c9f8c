// Catalan. ../phrase-lists.ts describes the lists.

import type { Phrases } from '../phrase-lists.ts';

export const catalan: Phrases = {
  voicemail: [
    'deixi un missatge després',
    'deixi el seu missatge després',
    'deixa un missatge després',
    'deixa el teu missatge després',
    'deixeu un missatge després',
    'deixeu el vostre missatge',
    'després del senyal',
    'aquesta és la bústia de veu',
    'el telèfon al qual truca està',
    'el número que ha marcat no existeix',
    'el número marcat no existeix',
    'no pot rebre més missatges',
    'la seva trucada és important per',
    'premi 1',
  ],
  callScreening: ['enregistri el seu nom', 'gravi el seu nom'],
  asksForHelp: [
    'en què el puc ajudar',
    'en què la puc ajudar',
    'en què puc ajudar',
    'què desitja',
    'qui parla',
    'de part de qui',
    "digui'm",
  ],
};
