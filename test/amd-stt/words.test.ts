import { describe, expect, test } from 'vitest';
import { phraseFinder } from '../../src/amd/stt/phrase-finder.ts';
import { phrasesByLanguage } from '../../src/amd/stt/phrases.ts';
import { createTranscript } from '../../src/amd/stt/transcript.ts';
import { keepsUp } from '../../src/amd/stt/transcription.ts';
import { createWordCounter, plainWords } from '../../src/amd/stt/words.ts';

describe('words', () => {
  test.each([
    ['en-US', "Hi, it's 5 o'clock — call back!", 6],
    ['de', 'Guten Tag, hier ist die Mailbox', 6],
    ['th', 'สวัสดีครับ', 2],
    ['multi', 'one two', 2],
    ['not a locale!', 'one two', 2],
    ['en', ' … ', 0],
  ])('in %s: %s', (language, text, words) => {
    expect(createWordCounter(language)(text)).toBe(words);
  });

  test('that are not written apart are counted all the same', () => {
    expect(createWordCounter('ja-JP')('留守番電話サービスに接続します')).toBeGreaterThan(3);
  });

  test('are compared without case, accents and punctuation', () => {
    expect(plainWords("  Après l'ÉTÉ, über-Größe! ")).toBe('apres l ete uber große');
  });
});

describe('phrases', () => {
  test.each([
    ['en-US', 'Hi, this is Ann. Please leave me your name and a short message', 'voicemail-phrase'],
    ['en-GB', 'Sorry I can’t take your call right now', 'voicemail-phrase'],
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
    ['de', 'Nennen Sie Ihren Namen und den Grund Ihres Anrufs', 'call-screening'],
    ['fr', "Dites votre nom et la raison de l'appel", 'call-screening'],
    [
      'es',
      'Si grabas tu nombre y el motivo, veré si esta persona está disponible',
      'call-screening',
    ],
    ['it', 'Dica il suo nome e il motivo', 'call-screening'],
    ['pt', 'Diga o seu nome e o motivo', 'call-screening'],
    ['nl', 'Zeg je naam en de reden', 'call-screening'],
    ['pl', 'Proszę zostawić wiadomość po usłyszeniu sygnału', 'voicemail-phrase'],
    [
      'sv',
      'Du har kommit till Eriks röstbrevlåda, lämna ett meddelande efter tonen',
      'voicemail-phrase',
    ],
    ['tr', 'Lütfen sinyal sesinden sonra mesajınızı bırakın', 'voicemail-phrase'],
    ['pl', 'Proszę podać imię i powód rozmowy', 'call-screening'],
    ['sv', 'Säg ditt namn och varför du ringer', 'call-screening'],
    ['tr', 'Lütfen adınızı ve arama nedeninizi söyleyin', 'call-screening'],
    [
      'en',
      'The mailbox is full and cannot accept any messages at this time. Goodbye.',
      'voicemail-phrase',
    ],
    ['de', 'Die Mailbox ist voll.', 'voicemail-phrase'],
    ['fr', 'La messagerie de votre correspondant est pleine', 'voicemail-phrase'],
    ['es', 'El buzón está lleno y no puede recibir más mensajes', 'voicemail-phrase'],
    ['it', 'La casella vocale è piena', 'voicemail-phrase'],
    ['pt', 'A caixa de mensagens está cheia', 'voicemail-phrase'],
    ['nl', 'De voicemail van deze klant is vol', 'voicemail-phrase'],
    ['pl', 'Skrzynka abonenta jest pełna', 'voicemail-phrase'],
    ['sv', 'Röstbrevlådan är full', 'voicemail-phrase'],
    ['tr', 'Mesaj kutusu dolu', 'voicemail-phrase'],
    ['en', 'The number you have called is not in service', 'voicemail-phrase'],
    ['de', 'Kein Anschluss unter dieser Nummer', 'voicemail-phrase'],
    ['fr', 'Le numéro demandé n’est pas attribué', 'voicemail-phrase'],
    ['es', 'El número que usted marcó no existe', 'voicemail-phrase'],
    ['it', 'Il numero da lei selezionato non è attivo', 'voicemail-phrase'],
    ['pt', 'Este número não existe', 'voicemail-phrase'],
    ['nl', 'Dit nummer is niet in gebruik', 'voicemail-phrase'],
    ['pl', 'Nie ma takiego numeru', 'voicemail-phrase'],
    ['sv', 'Numret har ingen abonnent', 'voicemail-phrase'],
    ['tr', 'Aradığınız numara kullanılmamaktadır', 'voicemail-phrase'],
    ['multi', 'nach dem Signalton', 'voicemail-phrase'],
    ['en', 'The wireless customer you are calling is not available', 'voicemail-phrase'],
    ['en', 'has a voicemail box that has not been set up yet', 'voicemail-phrase'],
    ['en', 'Your call cannot be completed as dialed', 'voicemail-phrase'],
    ['en', "the person you're calling is not available at the moment", 'voicemail-phrase'],
    ['en', 'sorry I can not take your call', 'voicemail-phrase'],
    ['en', 'I am not home', 'voicemail-phrase'],
    ['de', 'Ihr Gesprächspartner ist zurzeit nicht erreichbar', 'voicemail-phrase'],
    ['fr', "Le numéro que vous avez composé n'est pas en service actuellement", 'voicemail-phrase'],
    ['es', 'El teléfono al que llama está apagado o fuera de cobertura', 'voicemail-phrase'],
    ['it', 'Il cliente da lei chiamato non è al momento raggiungibile', 'voicemail-phrase'],
    ['cs', 'Volaný účastník je dočasně nedostupný', 'voicemail-phrase'],
    ['fi', 'Valitsemaanne numeroon ei juuri nyt saada yhteyttä', 'voicemail-phrase'],
    ['ru', 'Аппарат абонента выключен или находится вне зоны действия сети', 'voicemail-phrase'],
    ['ca', 'El telèfon al qual truca està apagat o fora de cobertura', 'voicemail-phrase'],
    ['hi', 'आप जिस नंबर पर कॉल कर रहे हैं वह अभी स्विच ऑफ है', 'voicemail-phrase'],
    ['cs', 'Řekněte prosím vaše jméno a důvod hovoru', 'call-screening'],
    ['ru', 'Пожалуйста, назовите ваше имя и цель звонка', 'call-screening'],
    ['fi', 'Sano nimesi ja soittosi syy', 'call-screening'],
  ])('%s: %s', (language, transcript, phrase) => {
    expect(phraseFinder(language).settling(transcript)).toBe(phrase);
  });

  test.each([
    ['en', "Hello? Who's calling, please?"],
    ['en', 'Acme Incorporated, this is Ann speaking, how can I help you today?'],
    ['en', 'She is not available, would you like to leave a message?'],
    ['en', 'May I have your name and the company you are calling from?'],
    ['en', 'the beeper, the toned mailboxes'],
    ['de', 'Möchten Sie eine Nachricht hinterlassen?'],
    ['fr', 'Voulez-vous laisser un message ?'],
    ['es', '¿Desea dejar un mensaje?'],
    ['nl', 'Wilt u een bericht achterlaten?'],
    ['fi', 'please leave a message after the tone'],
    ['pl', 'Czy chce pan zostawić wiadomość dla szefa?'],
    ['sv', 'Vill du att jag ber honom ringa upp?'],
    ['tr', 'Kendisi şu an toplantıda, not alayım mı?'],
    ['en', 'I can take your call now'],
    ['en', 'Please give your name'],
    ['cs', 'Haló, počkejte chvilku, já jenom zavřu dveře'],
    ['fi', 'Haloo, hetkinen, olen juuri ovella'],
    ['ru', 'Алло, подождите минуточку, я за рулём'],
    ['ca', 'Hola, esperi un moment'],
    ['hi', 'नमस्ते, एक मिनट रुकिए'],
  ])('a person may say in %s: %s', (language, transcript) => {
    const find = phraseFinder(language);

    expect(find.settling(transcript)).toBeUndefined();
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
  ])('an offer to help in %s: %s', (language, transcript) => {
    const find = phraseFinder(language);

    expect(find.asksForHelp(transcript)).toBe(true);
    expect(find.settling(transcript)).toBeUndefined();
  });

  test.each([
    ['one word misheard', 'the person you were calling is sorry I missed your goal'],
    ['the phrase cut short', 'leave a'],
    ['a negation misheard', 'I can now take your call'],
    ['a single word alone', 'Voicemail?'],
    ['a word within another', 'the voicemailer is here today'],
  ])('do not settle it with %s', (_, transcript) => {
    expect(phraseFinder('en').settling(transcript)).toBeUndefined();
  });

  test.each([
    ['another word in its place', 'if you record your game and reason for calling'],
    ['left out', 'record name and reason, sorry, I can’t take call, your call is to us'],
    ['in another language', 'Per favore, dica il tuo nome e motivo della chiamata'],
  ])('are known with a word %s', (_, transcript) => {
    const found = ['en', 'it'].map((language) => phraseFinder(language).settling(transcript));

    expect(found.some((phrase) => phrase !== undefined)).toBe(true);
  });

  test('of one word wait until it is no guess any more', () => {
    const find = phraseFinder('en');

    expect(find.settling('welcome to the mailbox', 'welcome to the')).toBeUndefined();
    expect(find.settling('welcome to the mailbox of', 'welcome to the mailbox')).toBe(
      'voicemail-phrase',
    );
    expect(find.settling('welcome to the mailbox')).toBe('voicemail-phrase');
  });

  test.each([
    ['en', 'You have reached 555 0123.'],
    ['en', 'No wonder mess the message or tone'],
    ['en', 'Not here. Leave your name'],
    ['de', 'Guten Tag, Sie sind verbunden mit der Praxis Doktor Weber'],
    ['fr', 'Bonjour, vous êtes bien chez Paul et Marie'],
    ['es', 'Ha llamado a Carlos y Ana'],
    ['it', 'Avete chiamato la famiglia Conti'],
    ['cs', 'Dovolali jste se do firmy Novák'],
    ['ru', 'Вы позвонили в компанию Вектор'],
  ])('of recordings are known where nothing settles it, in %s: %s', (language, transcript) => {
    const find = phraseFinder(language);

    expect(find.settling(transcript)).toBeUndefined();
    expect(find.soundsRecorded(transcript)).toBe(true);
  });

  test.each([
    ['en', "Hello? Who's calling, please?"],
    ['en', 'Hello, this is Anna.'],
    ['en', 'Yeah, hi, I am driving, I will call you later'],
    ['en', "Joe's Pizza, will this be for pick up or delivery?"],
    ['de', 'Hallo? Schneider, guten Tag.'],
    ['de', 'Autohaus Lindner, Sie sprechen mit Frau Weber'],
    ['fr', 'Allô, oui, bonjour, Paul Martin'],
    ['es', '¿Bueno? Sí, ¿quién es?'],
    ['it', 'Pronto, sono Giulia'],
    ['pt', 'Alô, bom dia, aqui é a Ana'],
    ['nl', 'Goedemiddag, u spreekt met Anna de Vries'],
    ['pl', 'Halo, tu Kowalski, słucham'],
    ['sv', 'Hej, det är Erik'],
    ['tr', 'Alo, buyurun, ben Ayşe'],
    ['cs', 'Prosím, tady Jana Dvořáková'],
    ['fi', 'Liisa puhelimessa, hyvää päivää'],
    ['ru', 'Алло, да, слушаю вас'],
    ['ca', 'Digui? Sóc la Maria'],
    ['hi', 'हैलो, कौन बोल रहा है?'],
    ['en', 'Hi, I cannot talk right now, call me back later'],
    ['de', 'Hallo, ich bin gerade nicht im Büro, rufen Sie später noch einmal an'],
    ['de', 'Danke für Ihren Anruf, Weber'],
    ['fr', 'Allô, je suis en réunion, vous pouvez rappeler plus tard ?'],
    ['es', 'Sí, en este momento no puedo hablar, llame más tarde'],
    ['it', 'Grazie per la sua chiamata, sono Anna'],
    ['pt', 'Oi, no momento não posso falar, ligue mais tarde'],
    ['pl', 'Halo, jestem zajęty, proszę zadzwonić później'],
    ['tr', 'Alo, toplantıdayım, daha sonra tekrar arayın'],
    ['cs', 'Haló, teď nemůžu mluvit, zavolejte později'],
    ['fi', 'Haloo, olen ajamassa, soita myöhemmin uudelleen'],
    ['ru', 'Алло, я за рулём, перезвоните позже'],
    ['ru', 'Компания Вектор, Анна, спасибо за ваш звонок'],
    ['ca', 'Digui? Ara no puc parlar, truqui més tard'],
    ['hi', 'हैलो, दुकान बंद है, थोड़ी देर बाद कॉल करना'],
    ['multi', 'Hello, this is Anna.'],
  ])('of a person are none, in %s: %s', (language, transcript) => {
    const find = phraseFinder(language);

    expect(find.settling(transcript)).toBeUndefined();
    expect(find.soundsRecorded(transcript)).toBe(false);
  });

  test.each([
    ['what comes after it', 'How may I help you? For sales press one, for support press two.'],
    ['a greeting without', 'You have reached Lake View Dental.'],
  ])('%s is no offer', (_, transcript) => {
    expect(phraseFinder('en').asksForHelp(transcript)).toBe(false);
  });

  test.each(Object.entries(phrasesByLanguage))(
    'of %s are found as they stand',
    (language, table) => {
      const find = phraseFinder(language);
      const said = (phrase: string) => `well ${phrase.replaceAll('…', 'so')} then`;

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
      for (const phrase of table.recorded) expect(find.soundsRecorded(said(phrase))).toBe(true);
      const [one = '', another = ''] = table.machineWords;
      expect(find.soundsRecorded(`${one} and ${another}`)).toBe(true);
      expect(find.soundsRecorded(`${one} and ${one}`)).toBe(table.recorded.includes(one));
    },
  );

  test('a long text without one is read in no time', () => {
    const find = phraseFinder('multi');
    for (let round = 0; round < 100; round += 1) {
      find.settling('please leave your name '.repeat(90));
      find.asksForHelp('how may i help you '.repeat(90));
    }
  });
});

describe('a transcript', () => {
  test('keeps what is final and replaces what is not', () => {
    const transcript = createTranscript();

    transcript.hear({ transcript: 'you have', isFinal: false }, 1_000);
    transcript.hear({ transcript: 'you have reached', isFinal: false }, 1_400);
    transcript.hear({ transcript: 'You have reached Ann.', isFinal: true, untilMs: 1_500 }, 2_000);
    transcript.hear({ transcript: 'please', isFinal: false }, 2_400);

    expect(transcript.text).toBe('You have reached Ann. please');
    expect(transcript.sureText).toBe('You have reached Ann.');
    expect(transcript.heardUntilMs).toBe(2_100);
  });

  test('an interim result that comes late does not outlive the final one', () => {
    const transcript = createTranscript();

    transcript.hear({ transcript: 'hello', isFinal: false }, 500);
    transcript.hear({ transcript: 'Hello.', isFinal: true }, 700);
    transcript.hear({ transcript: '', isFinal: true }, 900);

    expect(transcript.text).toBe('Hello.');
  });

  test('has heard no more than it was sent, and no less than before', () => {
    const transcript = createTranscript();

    transcript.hear({ transcript: 'a', isFinal: true, untilMs: 1e9 }, 800);
    transcript.hear({ transcript: 'b', isFinal: true, untilMs: 100 }, 900);

    expect(transcript.heardUntilMs).toBe(800);
  });

  test('is bounded and fit for JSON and SQL whatever comes', () => {
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
    ['while somebody speaks, with a second of latency', 3_000, 0, 2_000, true],
    ['not with more', 3_000, 0, 1_980, false],
    ['in a pause, with all that was said before it', 3_000, 1_500, 1_500, true],
    ['not without the last words', 3_000, 1_500, 1_480, false],
  ])('%s', (_name, elapsedMs, pauseMs, heardUntilMs, expected) => {
    expect(keepsUp({ words: 3, heardUntilMs }, elapsedMs, pauseMs)).toBe(expected);
  });

  test('not without words', () => {
    expect(keepsUp({ words: 0, heardUntilMs: 3_000 }, 3_000, 0)).toBe(false);
    expect(keepsUp(undefined, 3_000, 0)).toBe(false);
  });
});
