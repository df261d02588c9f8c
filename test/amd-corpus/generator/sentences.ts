// What is said on the telephone, by language and by role in the call. The synthetic voices of the
// corpus read it aloud.

/**
 * The parts of an answer. People say hello, name, business, chatty and again. Machines say the
 * others.
 */
export const roles = [
  'hello',
  'name',
  'business',
  'chatty',
  'again',
  'opening',
  'shortGreeting',
  'longGreeting',
  'screening',
  'full',
  'announcement',
  'queue',
] as const;
export type Role = (typeof roles)[number];

export const sentences: Readonly<Record<string, Readonly<Record<Role, readonly string[]>>>> = {
  en: {
    hello: ['Hello?', 'Yeah?', 'Hi.', 'Hello, hello?', 'Yes, hello.', 'Good morning.'],
    name: ['Hello, Peter speaking.', 'Miller.', 'Hi, this is Susan.', 'The Bakers, hello?'],
    business: [
      'Thank you for calling Lake View Dental, how may I help you?',
      'Good afternoon, Harrison and Partners, Julia speaking.',
      'Front desk, this is Monica, what can I do for you today?',
      "Joe's Pizza, will this be for pick up or delivery?",
      'Northside Plumbing and Heating, Dave speaking, how can I help?',
    ],
    chatty: [
      "Hello? Oh hang on, I'm just coming in with the shopping.",
      "Yeah hi, sorry, I was in the garden, who's this?",
      "Hello, this is Anna, I'm afraid my sister is out just now.",
    ],
    again: ['Hello?', 'Who is this please?', 'Is anybody there?', 'Yes, I can hear you, go on.'],
    opening: ['Hi.', 'Hello.', "Hi, it's Mark.", 'Hey there.'],
    shortGreeting: [
      'Please leave a message.',
      "You've reached Tom. Leave a message.",
      'Not here. Leave your name and number.',
      "Hi, it's Kate, you know what to do.",
      'Voicemail. Speak after the tone.',
      "We can't come to the phone right now.",
    ],
    longGreeting: [
      "You have reached the voicemail of Richard Cole. I can't take your call right now. Please leave your name and number after the tone, and I will call you back.",
      "Hi, this is Linda. I'm either on the other line or away from my desk. Leave me a message and I'll get back to you as soon as I can. Thanks, bye.",
      'The person you are calling is not available. At the tone, please record your message. When you have finished recording, you may hang up, or press one for more options.',
    ],
    screening: [
      'Hi, if you record your name and reason for calling, I will see if this person is available.',
      'The person you are calling is using a screening service. Please say your name and why you are calling.',
      'Before I try to connect you, please state your name after the tone.',
    ],
    full: [
      'The mailbox is full and cannot accept any messages at this time. Goodbye.',
      'This mailbox is full. Please call again later.',
    ],
    announcement: [
      'The number you have dialed is not in service. Please check the number and dial again.',
      'We are sorry, your call cannot be completed as dialed.',
      'The subscriber you have called is not reachable at the moment.',
    ],
    queue: [
      'Welcome to the energy hotline. All of our agents are currently busy. Your call is important to us. Please stay on the line.',
      'For sales, press one. For support, press two. For all other enquiries, please hold.',
    ],
  },
  de: {
    hello: ['Hallo?', 'Ja?', 'Ja bitte?', 'Ja, hallo?'],
    name: ['Schneider.', 'Weber, guten Tag.', 'Hier ist Monika Klein.', 'Becker, hallo?'],
    business: [
      'Praxis Doktor Hoffmann, mein Name ist Sabine Wolf, guten Tag.',
      'Autohaus Lindner, guten Morgen, was kann ich für Sie tun?',
    ],
    chatty: ['Ja hallo, einen Moment bitte, ich muss erst das Fenster zumachen.'],
    again: ['Hallo?', 'Wer ist denn da?', 'Hallo, hören Sie mich?'],
    opening: ['Hallo.', 'Guten Tag.'],
    shortGreeting: [
      'Bitte eine Nachricht hinterlassen.',
      'Hier ist die Mailbox von Jens.',
      'Wir sind nicht da. Sprechen Sie nach dem Ton.',
    ],
    longGreeting: [
      'Guten Tag, Sie sind verbunden mit dem Anschluss der Familie Krause. Leider sind wir zurzeit nicht zu erreichen. Bitte hinterlassen Sie eine Nachricht nach dem Signalton.',
    ],
    screening: ['Bitte nennen Sie Ihren Namen und den Grund Ihres Anrufs, ich frage nach.'],
    full: ['Die Mailbox ist voll. Es können keine Nachrichten hinterlassen werden.'],
    announcement: ['Die gewählte Rufnummer ist nicht vergeben. Bitte rufen Sie die Auskunft an.'],
    queue: ['Willkommen bei der Hotline. Der nächste freie Mitarbeiter ist gleich für Sie da.'],
  },
  fr: {
    hello: ['Allô?', 'Oui?', 'Oui, allô?', 'Bonjour.'],
    name: ['Allô, Martin à l’appareil.', 'Oui, Sophie.', 'Famille Dupont, bonjour.'],
    business: ['Cabinet du docteur Leroy, bonjour, que puis-je faire pour vous?'],
    chatty: ['Allô oui, attendez un instant, je sors de la cuisine.'],
    again: ['Allô?', 'Qui est à l’appareil?'],
    opening: ['Bonjour.', 'Salut.'],
    shortGreeting: ['Laissez un message après le bip.', 'Vous êtes bien chez Paul.'],
    longGreeting: [
      'Bonjour, vous êtes bien sur la messagerie de Claire Bernard. Je ne suis pas disponible pour le moment. Merci de laisser un message après le signal sonore.',
    ],
    screening: [
      'Veuillez dire votre nom et la raison de votre appel, je vérifie si la personne est là.',
    ],
    full: ['La messagerie de votre correspondant est pleine. Veuillez rappeler plus tard.'],
    announcement: [
      'Le numéro que vous avez composé n’est pas attribué. Veuillez vérifier votre annuaire.',
    ],
    queue: [
      'Tous nos conseillers sont en ligne. Merci de bien vouloir patienter quelques instants.',
    ],
  },
  es: {
    hello: ['¿Diga?', '¿Sí?', '¿Bueno?', '¿Hola?'],
    name: ['Sí, soy Carmen.', 'Familia Ortega, diga.', 'Aló, habla Miguel.'],
    business: ['Clínica dental Santa Ana, buenos días, ¿en qué puedo ayudarle?'],
    chatty: ['Hola, un momento por favor, que estoy saliendo de casa.'],
    again: ['¿Diga?', '¿Quién es?'],
    opening: ['Hola.', 'Buenos días.'],
    shortGreeting: ['Deje su mensaje.', 'Hola, soy Ana, deja un mensaje.'],
    longGreeting: [
      'Ha llamado al contestador de Javier Moreno. En este momento no puedo atenderle. Deje su nombre y su número después de la señal y le llamaré lo antes posible.',
    ],
    screening: ['Por favor, diga su nombre y el motivo de su llamada.'],
    full: ['El buzón está lleno y no puede recibir más mensajes.'],
    announcement: [
      'El número que usted marcó no existe. Por favor, verifíquelo e intente de nuevo.',
    ],
    queue: ['Todos nuestros agentes están ocupados. Por favor, espere en la línea.'],
  },
  it: {
    hello: ['Pronto?', 'Sì?', 'Pronto, chi parla?'],
    name: ['Pronto, sono Giulia.', 'Casa Rossi.', 'Bianchi, buongiorno.'],
    business: ['Studio legale Ferrari, buongiorno, come posso aiutarla?'],
    chatty: ['Pronto, scusi un attimo, sto entrando in casa adesso.'],
    again: ['Pronto?', 'Chi è?', 'Non sento niente.'],
    opening: ['Ciao.', 'Buongiorno.'],
    shortGreeting: ['Lasciate un messaggio.', 'Risponde la segreteria di Luca.'],
    longGreeting: [
      'Risponde la segreteria telefonica di Marco Conti. In questo momento non posso rispondere. Lasciate un messaggio dopo il segnale acustico, vi richiamerò appena possibile.',
    ],
    screening: ['Per favore, dica il suo nome e il motivo della chiamata.'],
    full: ['La casella vocale è piena. Non è possibile lasciare messaggi.'],
    announcement: ['Il numero selezionato non è attivo. La preghiamo di verificare.'],
    queue: ['Tutti gli operatori sono occupati. Vi preghiamo di rimanere in linea.'],
  },
  cs: {
    hello: ['Haló?', 'Prosím?', 'Ano?', 'Dobrý den.'],
    name: ['Novák, prosím.', 'Tady Jana.', 'Dvořáková, dobrý den.'],
    business: ['Zubní ordinace doktora Svobody, dobrý den, co pro vás můžu udělat?'],
    chatty: ['Haló, počkejte prosím chvilku, já jenom zavřu dveře.'],
    again: ['Haló?', 'Kdo je tam?', 'Slyšíte mě?'],
    opening: ['Ahoj.', 'Dobrý den.'],
    shortGreeting: ['Zanechte vzkaz po zaznění tónu.', 'Nejsem doma, zavolejte později.'],
    longGreeting: [
      'Dovolali jste se do hlasové schránky Petra Procházky. Momentálně nemohu hovor přijmout. Po zaznění signálu prosím zanechte zprávu a já se vám ozvu zpátky.',
    ],
    screening: ['Řekněte prosím své jméno a důvod hovoru, zjistím, jestli je volaný k dispozici.'],
    full: ['Hlasová schránka je plná. Zavolejte prosím později.'],
    announcement: ['Volané číslo neexistuje. Zkontrolujte prosím číslo a volejte znovu.'],
    queue: ['Všichni naši operátoři právě hovoří. Vyčkejte prosím na lince.'],
  },
  fi: {
    hello: ['Haloo?', 'Niin?', 'Joo, moi.', 'Terve.'],
    name: ['Virtanen.', 'Matti Korhonen, huomenta.', 'Liisa puhelimessa.'],
    business: ['Hammaslääkäri Niemisen vastaanotto, hyvää päivää, miten voin auttaa?'],
    chatty: ['Haloo, odota ihan pieni hetki, olen juuri tulossa ovesta sisään.'],
    again: ['Haloo?', 'Kuka siellä?', 'Kuuluuko?'],
    opening: ['Moi.', 'Hei.'],
    shortGreeting: ['Jätä viesti äänimerkin jälkeen.', 'En pääse nyt puhelimeen.'],
    longGreeting: [
      'Tämä on Pekka Mäkisen vastaaja. En valitettavasti pääse juuri nyt puhelimeen. Jätä nimesi ja numerosi äänimerkin jälkeen niin soitan takaisin mahdollisimman pian.',
    ],
    screening: ['Kerro nimesi ja asiasi, niin tarkistan onko henkilö tavoitettavissa.'],
    full: ['Vastaaja on täynnä, eikä uusia viestejä voi jättää.'],
    announcement: ['Valitsemanne numero ei ole käytössä. Tarkistakaa numero.'],
    queue: ['Kaikki asiakaspalvelijamme ovat varattuina. Odottakaa hetki.'],
  },
  ca: {
    hello: ['Digui?', 'Si?', 'Hola?'],
    name: ['Hola, sóc la Marta.', 'Casa Puig, digui.'],
    business: ['Clínica dental del Passeig, bon dia, en què el puc ajudar?'],
    chatty: ['Hola, esperi un moment si us plau, que estic entrant a casa.'],
    again: ['Digui?', 'Qui és?', 'Em sent?'],
    opening: ['Hola.', 'Bon dia.'],
    shortGreeting: ['Deixi un missatge després del senyal.', 'Ara no hi som.'],
    longGreeting: [
      'Ha trucat al contestador de la família Soler. Ara mateix no el podem atendre. Deixi el seu nom i el seu número després del senyal i li trucarem tan aviat com puguem.',
    ],
    screening: ['Si us plau, digui el seu nom i el motiu de la trucada.'],
    full: ['La bústia és plena i no pot rebre més missatges.'],
    announcement: ['El número que ha marcat no existeix. Comprovi el número si us plau.'],
    queue: ['Tots els nostres agents estan ocupats. Esperi un moment si us plau.'],
  },
  ru: {
    hello: ['Алло?', 'Да?', 'Слушаю.', 'Да, алло.'],
    name: ['Иванов слушает.', 'Алло, это Марина.'],
    business: ['Стоматология на Садовой, добрый день, чем я могу вам помочь?'],
    chatty: ['Алло, подождите минуточку, я сейчас закрою дверь.'],
    again: ['Алло?', 'Кто это?', 'Вы меня слышите?'],
    opening: ['Привет.', 'Здравствуйте.'],
    shortGreeting: ['Оставьте сообщение после сигнала.', 'Меня нет дома.'],
    longGreeting: [
      'Здравствуйте, вы позвонили Алексею Смирнову. К сожалению, я не могу сейчас ответить. Оставьте сообщение после звукового сигнала, и я вам обязательно перезвоню.',
    ],
    screening: ['Пожалуйста, назовите ваше имя и причину звонка.'],
    full: ['Почтовый ящик переполнен. Пожалуйста, перезвоните позже.'],
    announcement: ['Набранный вами номер не существует. Проверьте номер и перезвоните.'],
    queue: ['Все операторы заняты. Пожалуйста, оставайтесь на линии.'],
  },
  hi: {
    hello: ['हैलो?', 'जी?', 'नमस्ते।'],
    name: ['जी, मैं राम बोल रहा हूँ।', 'नमस्ते, शर्मा।'],
    business: ['नमस्ते, यह डाक्टर गुप्ता का दवाखाना है, मैं आपकी क्या मदद कर सकता हूँ?'],
    chatty: ['हैलो, एक मिनट रुकिए, मैं अभी घर के अंदर आ रहा हूँ।'],
    again: ['हैलो?', 'कौन बोल रहा है?'],
    opening: ['नमस्ते।', 'हैलो।'],
    shortGreeting: ['कृपया संदेश छोड़ें।', 'मैं अभी घर पर नहीं हूँ।'],
    longGreeting: [
      'नमस्ते, आप राम शर्मा के नंबर पर पहुँचे हैं। मैं अभी फोन नहीं उठा सकता। कृपया बीप के बाद अपना नाम और नंबर छोड़ें, मैं आपको जल्दी ही वापस फोन करूँगा।',
    ],
    screening: ['कृपया अपना नाम और फोन करने का कारण बताइए।'],
    full: ['यह मेलबाक्स भर गया है, कृपया बाद में फोन करें।'],
    announcement: ['आपने जो नंबर डायल किया है वह मौजूद नहीं है। कृपया नंबर जाँच लें।'],
    queue: ['हमारे सभी प्रतिनिधि अभी व्यस्त हैं। कृपया लाइन पर बने रहें।'],
  },
};
