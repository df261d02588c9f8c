// Element templates. A value in a template is text or an element, never markup.

import htm from 'htm';
import { h } from 'preact';

export const html = htm.bind(h);
