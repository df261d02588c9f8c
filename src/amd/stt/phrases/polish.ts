// Polish. ../phrase-lists.ts describes the lists.

import type { Phrases } from '../phrase-lists.ts';

export const polish: Phrases = {
  voicemail: [
    'zostaw wiadomość po',
    'proszę zostawić wiadomość po',
    'zostawić wiadomość po sygnale',
    'nagraj wiadomość po',
    'po sygnale',
    'po usłyszeniu sygnału',
    'tu poczta głosowa',
    'poczta głosowa abonenta',
    'poczta głosowa numeru',
    'skrzynka abonenta',
    'tu automatyczna sekretarka',
    'abonent jest',
    'abonent czasowo',
    'abonent nie',
    'abonent ma',
    'abonent z którym',
    'abonent do którego',
    'wybrany numer nie istnieje',
    'prosimy czekać na zgłoszenie',
    'naciśnij jeden',
    'naciśnij 1',
    'wybierz 1',
    'ta skrzynka jest pełna',
  ],
  callScreening: ['nagraj imię i', 'nagraj swoje imię', 'jeśli nagrasz'],
  asksForHelp: [
    'w czym mogę pomóc',
    'jak mogę pomóc',
    'co mogę dla pana zrobić',
    'co mogę dla pani zrobić',
    'kto mówi',
    'z kim rozmawiam',
    'słucham',
    'czym mogę służyć',
  ],
};
