import { describe, expect, test } from 'vitest';
import { phraseFinder } from '../../src/amd/stt/phrase-finder.ts';
import { phrasesByLanguage } from '../../src/amd/stt/phrases.ts';
import { createTranscript } from '../../src/amd/stt/transcript.ts';
import { keepsUp } from '../../src/amd/stt/transcription.ts';
import { createWordCounter, plainWords } from '../../src/amd/stt/words.ts';
import { saidByPeople } from './support/said-by-people.ts';

/** A recogniser sends these one after the other. */
function beginningsOf(sentence: string): string[] {
  const words = sentence.split(' ');
  return words.map((_, index) => words.slice(0, index + 1).join(' '));
}

describe('words', () => {
  test.each([
    ['en-US', "Hi, it's 5 o'clock — call back!", 6],
    ['de', 'Guten Tag, hier ist die Mailbox', 6],
    ['th', 'สวัสดีครับ', 2],
    ['multi', 'one two', 2],
    ['not a locale!', 'one two', 2],
    ['en', ' … ', 0],
  ])('are counted in %s: %s', (language, text, words) => {
    expect(createWordCounter(language)(text)).toBe(words);
  });

  test('are counted in scripts without spaces too', () => {
    expect(createWordCounter('ja-JP')('留守番電話サービスに接続します')).toBeGreaterThan(3);
  });

  test('are compared without case, accents and punctuation', () => {
    expect(plainWords("  Après l'ÉTÉ, über-Größe! ")).toBe('apres l ete uber große');
    expect(plainWords('बीप के बाद!')).toBe('बीप के बाद');
  });
});

describe('phrases', () => {
  test.each([
    ['en-US', 'Hi, this is Ann. Please leave me your name and a short message', 'voicemail-phrase'],
    ['en-GB', 'Sorry I can’t take your call right now, leave a message', 'voicemail-phrase'],
    ['en', 'record your message at the tone', 'voicemail-phrase'],
    ['de-DE', 'Bitte sprechen Sie nach dem Signalton.', 'voicemail-phrase'],
    ['de', 'Der Teilnehmer ist vorübergehend nicht erreichbar', 'voicemail-phrase'],
    ['fr-FR', 'Bonjour, vous êtes sur la messagerie de Paul', 'voicemail-phrase'],
    ['es', 'Deje su mensaje después de la señal', 'voicemail-phrase'],
    ['it-IT', 'Risponde la segreteria telefonica', 'voicemail-phrase'],
    ['pt_BR', 'Deixe sua mensagem após o sinal', 'voicemail-phrase'],
    ['nl', 'Spreek een bericht in na de piep', 'voicemail-phrase'],
    [
      'en-US',
      "Hi, if you record your name and reason for calling, I'll see if this person is available",
      'call-screening',
    ],
    [
      'en',
      "The person you're calling is using a screening service from Google. Say your name after the tone",
      'call-screening',
    ],
    [
      'de',
      'Wenn du deinen Namen und den Grund für deinen Anruf aufnimmst, sehe ich nach',
      'call-screening',
    ],
    ['fr', 'Si vous enregistrez votre nom et la raison de votre appel', 'call-screening'],
    [
      'es',
      'Si grabas tu nombre y el motivo, veré si esta persona está disponible',
      'call-screening',
    ],
    ['it', 'Registri il suo nome e il motivo', 'call-screening'],
    ['pt', 'Grave o seu nome e o motivo', 'call-screening'],
    ['nl', 'Spreek je naam in en de reden', 'call-screening'],
    ['pl', 'Proszę zostawić wiadomość po usłyszeniu sygnału', 'voicemail-phrase'],
    [
      'sv',
      'Du har kommit till Eriks röstbrevlåda, lämna ett meddelande efter tonen',
      'voicemail-phrase',
    ],
    ['tr', 'Lütfen sinyal sesinden sonra mesajınızı bırakın', 'voicemail-phrase'],
    ['pl', 'Nagraj swoje imię i powód rozmowy', 'call-screening'],
    ['sv', 'Spela in ditt namn och varför du ringer', 'call-screening'],
    ['tr', 'Lütfen adınızı ve arama nedeninizi kaydedin', 'call-screening'],
    [
      'en',
      'The mailbox is full and cannot accept any messages at this time. Goodbye.',
      'voicemail-phrase',
    ],
    ['de', 'Die Mailbox des Teilnehmers ist voll.', 'voicemail-phrase'],
    ['fr', 'La messagerie de votre correspondant est pleine', 'voicemail-phrase'],
    ['es', 'El buzón está lleno y no puede recibir más mensajes', 'voicemail-phrase'],
    ['it', 'La casella vocale del cliente è piena', 'voicemail-phrase'],
    ['nl', 'De voicemail van deze klant is vol', 'voicemail-phrase'],
    ['pl', 'Skrzynka abonenta jest pełna', 'voicemail-phrase'],
    ['en', 'The number you have called is not in service', 'voicemail-phrase'],
    ['de', 'Kein Anschluss unter dieser Nummer', 'voicemail-phrase'],
    ['fr', 'Le numéro demandé n’est pas attribué', 'voicemail-phrase'],
    ['es', 'El número que usted marcó no existe', 'voicemail-phrase'],
    ['it', 'Il numero da lei selezionato non è attivo', 'voicemail-phrase'],
    ['nl', 'Dit nummer is niet in gebruik', 'voicemail-phrase'],
    ['sv', 'Numret har ingen abonnent', 'voicemail-phrase'],
    ['tr', 'Aradığınız numara kullanılmamaktadır', 'voicemail-phrase'],
    ['tr', 'Aradığınız kişiye şu anda ulaşılamamaktadır', 'voicemail-phrase'],
    ['tr', 'Satış için biri tuşlayınız', 'voicemail-phrase'],
    ['multi', 'nach dem Signalton', 'voicemail-phrase'],
    ['en', 'The wireless customer you are calling is not available', 'voicemail-phrase'],
    ['en', 'has a voicemail box that has not been set up yet', 'voicemail-phrase'],
    ['en', 'Your call cannot be completed as dialed', 'voicemail-phrase'],
    ['en', "the person you're calling is not available at the moment", 'voicemail-phrase'],
    ['en', 'sorry I can not come to the phone', 'voicemail-phrase'],
    ['de', 'Der gewünschte Gesprächspartner ist nicht erreichbar', 'voicemail-phrase'],
    ['fr', "Le numéro que vous avez composé n'est pas en service actuellement", 'voicemail-phrase'],
    ['es', 'El teléfono al que llama está apagado o fuera de cobertura', 'voicemail-phrase'],
    ['it', 'Il cliente da lei chiamato non è al momento raggiungibile', 'voicemail-phrase'],
    ['cs', 'Volaný účastník je dočasně nedostupný', 'voicemail-phrase'],
    ['fi', 'Valitsemaanne numeroon ei juuri nyt saada yhteyttä', 'voicemail-phrase'],
    ['ru', 'Аппарат абонента выключен или находится вне зоны действия сети', 'voicemail-phrase'],
    ['ca', 'El telèfon al qual truca està apagat o fora de cobertura', 'voicemail-phrase'],
    ['hi', 'आप जिस नंबर पर कॉल कर रहे हैं वह अभी स्विच ऑफ है', 'voicemail-phrase'],
    ['cs', 'Nahrajte vaše jméno a důvod hovoru', 'call-screening'],
    ['ru', 'Пожалуйста, запишите ваше имя и цель звонка', 'call-screening'],
    ['fi', 'Nauhoita nimesi ja soittosi syy', 'call-screening'],
    ['en', 'This call is being screened by Google, go ahead and say', 'call-screening'],
    ['en', "Hi, you're talking to an automated assistant, what can I pass on?", 'call-screening'],
    ['en', 'The voice mailbox has not been set up yet', 'voicemail-phrase'],
    ['en', 'There is no space left in the mailbox', 'voicemail-phrase'],
    ['en', 'Welcome to the city, all of our agents are currently busy', 'voicemail-phrase'],
    ['en', 'For billing, press three. For all other enquiries, please hold', 'voicemail-phrase'],
    ['en', 'Your position in the queue is four', 'voicemail-phrase'],
    ['en', "It's Jenny. Leave me a message and I'll get back to you", 'voicemail-phrase'],
    ['en', "You've reached Tom. Leave your name and number", 'voicemail-phrase'],
    ['de', 'Ihr Anruf wird geprüft, bitte sagen Sie, worum es geht', 'call-screening'],
    ['de', 'Diese Mailbox ist noch nicht eingerichtet', 'voicemail-phrase'],
    ['de', 'Für Fragen zur Rechnung drücken Sie bitte', 'voicemail-phrase'],
    ['fr', 'Bonjour, votre appel est filtré, dites votre nom', 'call-screening'],
    ['fr', 'Votre appel est important pour nous', 'voicemail-phrase'],
    ['fr', 'Cette boîte vocale n’a pas été configurée', 'voicemail-phrase'],
  ])('%s: %s', (language, transcript, phrase) => {
    expect(phraseFinder(language).settling(transcript)).toBe(phrase);
  });

  test.each([
    // One word of a long phrase may be misheard or missing, but not one that denies.
    ['en', 'the customer you were calling is not available', 'voicemail-phrase'],
    ['en', 'number you have dialed is in service', undefined],
    ['en', 'the person you are calling is now available', undefined],
    ['en', 'I can come to the phone', undefined],
    // Some phrases count only as the first words of the call.
    ['es', 'Por favor, diga su nombre y el motivo de su llamada', 'call-screening'],
    ['es', 'Oficina, por favor, diga su nombre y el motivo de su llamada', undefined],
    ['en', 'The person at extension four is unavailable', 'voicemail-phrase'],
    ['en', 'Sales, the person at extension four is unavailable', undefined],
    // Any digit, written or spoken.
    ['fr', 'Pour écouter vos messages, appuyez sur 5', 'voicemail-phrase'],
    ['it', 'premere sette per lasciare un messaggio', 'voicemail-phrase'],
    ['it', 'premere il campanello per entrare', undefined],
    // Two cues count if they have four words together.
    ['de', 'Alle Leitungen sind belegt, haben Sie bitte um etwas Geduld', 'voicemail-phrase'],
    ['fi', 'Kaikki asiakaspalvelijamme ovat varattuina. Odottakaa hetki.', 'voicemail-phrase'],
    ['en', 'an unavailable recording', undefined],
  ])('%s: %s decides %s', (language, transcript, phrase) => {
    expect(phraseFinder(language).settling(transcript)).toBe(phrase);
  });

  test.each([
    // A single cue is what people say, too.
    'Hi, you have reached Lake View Dental, this is Anna',
    "I'm unavailable on Mondays",
    'Please hold, I am getting my glasses',
    // The speaker answers for another, offers, or asks.
    "He can't come to the phone, you can leave your name and I'll tell him",
    "You've reached her sister, she'll get back to you",
    'You have reached reception, our agents left, may I take a message?',
    "Did you leave a message? I was going to call you back, it's in my voicemail",
  ])('cues of a recording do not decide about: %s', (said) => {
    expect(phraseFinder('en').settling(said)).toBeUndefined();
  });

  describe.each(Object.entries(saidByPeople))(
    'a person in %s does not decide the verdict with',
    (language, sentences) => {
      test.each(sentences.map((sentence) => [sentence]))('%s', (sentence) => {
        for (const said of [...beginningsOf(sentence), plainWords(sentence)]) {
          expect(phraseFinder(language).settling(said)).toBeUndefined();
          expect(phraseFinder('multi').settling(said)).toBeUndefined();
        }
      });
    },
  );

  test.each([
    ['in another language', 'fi', 'please leave a message after the tone'],
    ['inside other words', 'en', 'the beeper, the toned mailboxes'],
    ['without its end', 'en', 'at the'],
    ['with one other word', 'en', 'at the stone, I now come to the phone'],
    ['with other vowels', 'hi', 'बाप के बाद'],
  ])('are not found %s', (_, language, transcript) => {
    expect(phraseFinder(language).settling(transcript)).toBeUndefined();
  });

  test.each([
    ['en-US', 'Thank you for calling Lake View Dental, how may I help you today?'],
    ['de', 'Autohaus Lindner, guten Morgen, was kann ich für Sie tun?'],
    ['fr', 'Cabinet du docteur Leroy, bonjour, que puis-je faire pour vous ?'],
    ['es', 'Clínica dental Santa Ana, buenos días, ¿en qué puedo ayudarle?'],
    ['it', 'Studio legale Ferrari, buongiorno, come posso aiutarla?'],
    ['pt', 'Padaria Central, bom dia, em que posso ajudar?'],
    ['nl', 'Garage Jansen, goedemorgen, waarmee kan ik u helpen?'],
    ['pl', 'Biuro rachunkowe, dzień dobry, w czym mogę pomóc?'],
    ['sv', 'Vårdcentralen, god morgon, vad kan jag hjälpa dig med?'],
    ['tr', 'Günaydın, Yılmaz Ticaret, size nasıl yardımcı olabilirim?'],
    ['cs', 'Autoservis Novák, dobrý den, jak vám mohu pomoci?'],
    ['fi', 'Autohuolto Virtanen, hyvää päivää, miten voin auttaa?'],
    ['ru', 'Компания Вектор, добрый день, чем могу помочь?'],
    ['ca', 'Clínica Puig, bon dia, en què el puc ajudar?'],
    ['hi', 'नमस्ते, शर्मा ट्रेडर्स, मैं आपकी क्या मदद कर सकता हूँ?'],
  ])('include an offer to help in %s: %s', (language, transcript) => {
    const find = phraseFinder(language);

    expect(find.asksForHelp(transcript)).toBe(true);
    expect(find.settling(transcript)).toBeUndefined();
  });

  test.each(Object.entries(phrasesByLanguage))(
    'of %s that decide a verdict have several words',
    (_, table) => {
      const words = (phrase: string) => plainWords(phrase.replaceAll('#', '4')).split(' ').length;
      const settling = [...table.voicemail, ...table.callScreening];

      expect(settling.filter((phrase) => words(phrase) < 2)).toEqual([]);
    },
  );

  test.each([
    [
      'a question with more text after it',
      'How may I help you? For sales press one, for support press two.',
    ],
    ['a greeting without a question', 'You have reached Lake View Dental.'],
  ])('do not include %s as an offer', (_, transcript) => {
    expect(phraseFinder('en').asksForHelp(transcript)).toBe(false);
  });

  test.each(Object.entries(phrasesByLanguage))('of %s are found exactly', (language, table) => {
    const find = phraseFinder(language);
    const said = (phrase: string) =>
      `well ${phrase.replaceAll('…', 'so').replaceAll('#', '4')} then`;

    for (const phrase of table.callScreening) {
      expect(find.settling(said(phrase))).toBe('call-screening');
    }
    for (const phrase of table.voicemail) {
      expect(find.settling(said(phrase))).toBe('voicemail-phrase');
    }
    for (const phrase of table.asksForHelp) {
      expect(find.asksForHelp(said(phrase))).toBe(true);
      expect(find.settling(said(phrase))).toBeUndefined();
    }
  });

  test('are searched quickly in a long text without any', () => {
    const find = phraseFinder('multi');
    for (let round = 0; round < 100; round += 1) {
      find.settling('please leave your name '.repeat(90));
      find.asksForHelp('how may i help you '.repeat(90));
    }
  });
});

describe('a transcript', () => {
  test('keeps final results and replaces interim ones', () => {
    const transcript = createTranscript();

    transcript.hear({ transcript: 'you have', isFinal: false }, 1_000);
    transcript.hear({ transcript: 'you have reached', isFinal: false }, 1_400);
    transcript.hear({ transcript: 'You have reached Ann.', isFinal: true, untilMs: 1_500 }, 2_000);
    transcript.hear({ transcript: 'please', isFinal: false }, 2_400);

    expect(transcript.text).toBe('You have reached Ann. please');
    expect(transcript.heardUntilMs).toBe(2_100);
  });

  test('drops an interim result at the final one', () => {
    const transcript = createTranscript();

    transcript.hear({ transcript: 'hello', isFinal: false }, 500);
    transcript.hear({ transcript: 'Hello.', isFinal: true }, 700);
    transcript.hear({ transcript: '', isFinal: true }, 900);

    expect(transcript.text).toBe('Hello.');
  });

  test('has heard at most what was sent, and never less than before', () => {
    const transcript = createTranscript();

    transcript.hear({ transcript: 'a', isFinal: true, untilMs: 1e9 }, 800);
    transcript.hear({ transcript: 'b', isFinal: true, untilMs: 100 }, 900);

    expect(transcript.heardUntilMs).toBe(800);
  });

  test('is bounded and valid in JSON and SQL, whatever the provider sends', () => {
    const transcript = createTranscript();

    transcript.hear({ transcript: `a\u0000b\ud800 ${'x '.repeat(10_000)}`, isFinal: true }, 1_000);
    for (let round = 0; round < 100; round += 1) {
      transcript.hear({ transcript: 'y'.repeat(1_000), isFinal: true }, 1_000);
    }

    expect(transcript.text.length).toBeLessThanOrEqual(2_000);
    expect(transcript.text).toMatch(/^a b {2}x x/);
  });
});

describe('a second opinion keeps up', () => {
  test.each([
    ['while a voice is heard, with a second of latency', 3_000, 0, 2_000, true],
    ['not with more latency', 3_000, 0, 1_980, false],
    ['in a pause, with everything said before it', 3_000, 1_500, 1_500, true],
    ['not without the last words', 3_000, 1_500, 1_480, false],
  ])('%s', (_name, elapsedMs, pauseMs, heardUntilMs, expected) => {
    expect(keepsUp({ words: 3, heardUntilMs }, elapsedMs, pauseMs)).toBe(expected);
  });

  test('not without words', () => {
    expect(keepsUp({ words: 0, heardUntilMs: 3_000 }, 3_000, 0)).toBe(false);
    expect(keepsUp(undefined, 3_000, 0)).toBe(false);
  });
});
