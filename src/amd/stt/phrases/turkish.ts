// Turkish. What the lists are for is said in ../phrase-lists.ts.

import type { Phrases } from '../phrase-lists.ts';

export const turkish: Phrases = {
  voicemail: [
    'mesaj bırakın',
    'mesajınızı bırakın',
    'mesaj bırakabilirsiniz',
    'mesaj bırakınız',
    'sinyal sesinden sonra',
    'bip sesinden sonra',
    'sesli mesaj',
    'telesekreter',
    'telefona cevap veremiyorum',
    'aradığınız kişiye … ulaşılamıyor',
    'aradığınız kişiye şu anda ulaşılamıyor',
    'aradığınız numara',
    'mesaj kutusu dolu',
    'numara kullanılmamaktadır',
    'kapsama alanı dışında',
    'lütfen hattan ayrılmayın',
    'lütfen hatta kalın',
    'müşteri temsilcisine bağlanacaksınız',
  ],
  callScreening: [
    'arama filtresi',
    'çağrı filtreleme',
    'adınızı ve arama',
    'adınızı ve arama nedeninizi',
    'isminizi ve arama',
    'adınızı söyleyin ve',
    'kişinin müsait olup olmadığını',
  ],
  asksForHelp: [
    'nasıl yardımcı olabilirim',
    'size nasıl yardımcı olabiliriz',
    'ne konuda yardımcı olabilirim',
    'buyurun nasıl yardımcı',
  ],
};
