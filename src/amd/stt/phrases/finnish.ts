// Finnish. ../phrase-lists.ts describes the lists.

import type { Phrases } from '../phrase-lists.ts';

export const finnish: Phrases = {
  voicemail: [
    'äänimerkin jälkeen',
    'äänimerkin kuultuasi',
    'valitsemaanne numeroon ei',
    'valitsemaasi numeroon ei',
    'ei juuri nyt saada yhteyttä',
    'valitsemanne numero ei ole käytössä',
    'valitsemasi numero ei ole käytössä',
    'puhelunne on jonossa',
    'puhelusi on jonossa',
  ],
  callScreening: ['nauhoita nimesi', 'jos nauhoitat nimesi'],
  asksForHelp: [
    'miten voin auttaa',
    'kuinka voin auttaa',
    'mitä voin tehdä',
    'voinko auttaa',
    'kuka soittaa',
    'kuka siellä',
  ],
};
