// Turkish. ../phrase-lists.ts describes the lists.

import type { Phrases } from '../phrase-lists.ts';

export const turkish: Phrases = {
  voicemail: [
    'sinyal sesinden sonra',
    'bip sesinden sonra',
    'sesli mesaj bırakın',
    'telesekretere bağlandınız',
    'aradığınız kişiye şu anda ulaşılamıyor',
    'aradığınız … ulaşılamamaktadır',
    'numara kullanılmamaktadır',
    'müşteri temsilcisine bağlanacaksınız',
    'için … tuşlayınız',
  ],
  callScreening: ['arama nedeninizi kaydedin', 'arama nedeninizi kaydederseniz'],
  asksForHelp: [
    'nasıl yardımcı olabilirim',
    'size nasıl yardımcı olabiliriz',
    'ne konuda yardımcı olabilirim',
    'buyurun nasıl yardımcı',
    'kiminle görüşüyorum',
    'kimsiniz',
    'kim arıyor',
    'buyurun',
  ],
};
