// Writes phone numbers as their country does, with the calling code. The gateway takes the table of
// formats from libphonenumber.

import { writeCaller, writeNumber } from './number-writing.js';

/** The gateway generates this module, so it isn't in this folder. */
const table = new URL('library/number-formats.js', import.meta.url).href;
const { formats } = await import(table);

/** Formats a number, or a target without its scheme. Returns anything else as it is. */
export const phoneNumber = (text) => writeNumber(text, formats);

/** Formats a caller ID. */
export const callerNumber = (text) => writeCaller(text, formats);
