// Elements as templates: everything that is put into one is text or an element, never markup.

import htm from 'htm';
import { h } from 'preact';

export const html = htm.bind(h);
