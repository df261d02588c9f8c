// French. What the lists are for is said in ../phrase-lists.ts.

import type { Phrases } from '../phrase-lists.ts';

export const french: Phrases = {
  voicemail: [
    'laissez … message',
    'veuillez laisser',
    'laisser un message après',
    'après le bip',
    'après le signal',
    'après la tonalité',
    'messagerie vocale',
    'sur la messagerie',
    'boîte vocale',
    'répondeur',
    'le numéro que vous avez composé',
    'votre correspondant',
    'ne peux pas vous répondre',
    'ne peux répondre à votre appel',
    'ne pouvons … répondre à votre appel',
    'vous rappellerai dès que',
    'messagerie … est pleine',
    'boîte vocale est pleine',
    "n'est pas attribué",
    "n'est plus attribué",
    "n'est pas joignable",
    "n'est pas disponible pour le moment",
    'veuillez patienter',
    'ne quittez pas',
    'veuillez rappeler ultérieurement',
  ],
  callScreening: [
    "filtrage d'appels",
    'filtrage des appels',
    'dites votre nom et',
    'indiquez votre nom et',
    'enregistrez votre nom et',
    'votre nom et la raison de votre appel',
    'votre nom et le motif de votre appel',
    'si cette personne est disponible',
  ],
  asksForHelp: [
    'que puis je faire pour vous',
    'comment puis je vous aider',
    'en quoi puis je vous aider',
    'puis je vous renseigner',
  ],
};
