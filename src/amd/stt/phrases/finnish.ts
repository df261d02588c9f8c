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
    'en pääse nyt puhelimeen',
    'en pääse juuri nyt puhelimeen',
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
  callScreeningFirst: ['kerro nimesi ja asiasi niin tarkistan'],
  cues: [
    ['vastaaja on', 'puhelinvastaaja on', 'tämä on vastaaja'],
    ['jätä viesti', 'jätä nimesi'],
    ['en pääse nyt', 'en pääse juuri', 'en valitettavasti pääse'],
    ['on täynnä', 'uusia viestejä', 'viestejä voi jättää'],
    ['valitsemanne numero', 'valitsemasi numero'],
    ['ei ole käytössä', 'tarkistakaa numero'],
    ['kaikki asiakaspalvelijamme', 'asiakaspalvelijamme ovat', 'kaikki linjamme'],
    ['odottakaa hetki', 'olkaa hyvä ja odottakaa', 'pysykää linjalla'],
  ],
  saidBesideCues: [
    'minulle',
    'hänelle',
    'hän',
    'yhdistän',
    'kuka',
    'kenelle',
    'väärä',
    'anteeksi',
    'ajan autoa',
    'soititte',
  ],
};
