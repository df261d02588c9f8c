// Polish. What the lists are for is said in ../phrase-lists.ts.

import type { Phrases } from '../phrase-lists.ts';

export const polish: Phrases = {
  voicemail: [
    'zostaw wiadomość',
    'proszę zostawić wiadomość',
    'zostawić wiadomość po',
    'nagraj wiadomość',
    'po sygnale',
    'po usłyszeniu sygnału',
    'poczta głosowa',
    'poczty głosowej',
    'automatyczna sekretarka',
    'abonent … nie może odebrać',
    'abonent … jest niedostępny',
    'abonent czasowo niedostępny',
    'nie mogę teraz odebrać',
    'nie możemy teraz odebrać',
    'skrzynka … jest pełna',
    'nie ma takiego numeru',
    'wybrany numer nie istnieje',
    'prosimy czekać na połączenie',
    'proszę pozostać na linii',
  ],
  callScreening: [
    'filtrowanie połączeń',
    'podaj imię i',
    'proszę podać imię i',
    'podać swoje imię i',
    'imię i powód',
    'imię i cel',
    'czy ta osoba jest dostępna',
    'czy rozmówca jest dostępny',
  ],
  asksForHelp: [
    'w czym mogę pomóc',
    'jak mogę pomóc',
    'co mogę dla pana zrobić',
    'co mogę dla pani zrobić',
  ],
};
