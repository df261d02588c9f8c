// Ordered notes about a call, kept in addition to its events. Their total size is bounded: if there
// are too many notes, those in the middle are dropped.

import type { CallNote, CallNotesView } from './capture.ts';

/** Maximum total size of the notes as JSON. */
const maxBytes = 30_000;
/** Approximate size of a note, not counting its text. */
const overheadBytes = 90;
/**
 * Maximum length of a note's text. A mark's name may be kilobytes long, but nobody needs to read
 * that much.
 */
const maxTextLength = 80;

type Mark = Extract<CallNote, { readonly kind: 'mark' }>;

export class CallNotes {
  #notes: CallNote[] = [];
  #bytes = 0;
  #left = 0;

  add(note: CallNote): void {
    const kept = shorten(note);
    const bytes = bytesOf(kept);
    this.#notes.push(kept);
    this.#bytes += bytes;
    while (this.#bytes > maxBytes) {
      const [gone] = this.#notes.splice(Math.floor(this.#notes.length / 2), 1);
      if (gone === undefined) return;
      this.#bytes -= bytesOf(gone);
      this.#left += 1;
    }
  }

  /**
   * Records that a mark was returned to the bot. Marks return in order, so if several share this
   * name, it is the oldest one still outstanding.
   */
  returnMark(name: string, at: number): void {
    const short = name.slice(0, maxTextLength);
    const index = this.#notes.findIndex(
      (note) => note.kind === 'mark' && note.name === short && note.returnedAt === undefined,
    );
    if (index >= 0) this.#notes[index] = { ...(this.#notes[index] as Mark), returnedAt: at };
  }

  view(): CallNotesView {
    return { notes: [...this.#notes], left: this.#left };
  }
}

function shorten(note: CallNote): CallNote {
  switch (note.kind) {
    case 'mark':
      return { ...note, name: note.name.slice(0, maxTextLength) };
    case 'words':
      return { ...note, text: note.text.slice(0, maxTextLength) };
    case 'command':
      return {
        ...note,
        what: note.what.slice(0, 2 * maxTextLength),
        ...(note.refusal === undefined
          ? {}
          : { refusal: note.refusal.slice(0, 3 * maxTextLength) }),
      };
    case 'clear':
      return note;
  }
}

function bytesOf(note: CallNote): number {
  switch (note.kind) {
    case 'mark':
      return overheadBytes + Buffer.byteLength(note.name);
    case 'words':
      return overheadBytes + Buffer.byteLength(note.text);
    case 'command': {
      const texts = `${note.what}${note.by}${note.commandId ?? ''}${note.refusal ?? ''}`;
      return overheadBytes + Buffer.byteLength(texts);
    }
    case 'clear':
      return overheadBytes;
  }
}
