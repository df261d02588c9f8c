// Stores recordings in a bucket. A recording of up to 8 min is one request. A longer one is sent in
// parts, each of which is retried alone, so that a bad line doesn't send an hour of audio twice.

import { type FileHandle, open } from 'node:fs/promises';
import { setTimeout as pause } from 'node:timers/promises';
import type { BucketTarget, Done, RecordingStore, StoreFault } from './recording-store.ts';
import { type S3Answer, type S3Request, S3Requests } from './s3-requests.ts';
import { probeName, transferTimeoutMs } from './store-bounds.ts';

/** S3 wants at least 5 MiB. A part is in memory while it is sent. */
const partBytes = 8 * 1_024 * 1_024;
/** The keeper tries the whole recording again, much later. */
const partPausesMs = [500, 2_000];

export function openS3Store(target: BucketTarget): RecordingStore {
  const requests = new S3Requests(target);
  const remove = async (name: string): Promise<Done> =>
    doneOf(await requests.send({ method: 'DELETE', name }), { isMissingFine: true });
  return {
    async put(name, path, contentType) {
      const file = await open(path, 'r');
      try {
        const { size } = await file.stat();
        const upload = { requests, name, file, size, contentType };
        return size <= partBytes ? await putWhole(upload) : await putInParts(upload);
      } finally {
        await file.close();
      }
    },
    async read(name, range) {
      const headers = range === undefined ? {} : { range: `bytes=${range.start}-${range.end}` };
      const answer = await requests.stream({ method: 'GET', name, headers });
      if (answer.ok) {
        const { content, headers: received } = answer;
        // A reader that goes away destroys the content, which is an error only to undici.
        content.on('error', () => undefined);
        return { kind: 'found', content, bytes: Number(received['content-length'] ?? 0) };
      }
      const isMissing = answer.status === 404 && answer.fault.code !== 'NoSuchBucket';
      return isMissing ? { kind: 'missing' } : { kind: 'failed', fault: answer.fault };
    },
    remove,
    link: (name, seconds) => requests.signedAddress(name, seconds),
    async check() {
      const name = probeName();
      const body = Buffer.from('offhook\n');
      const put = doneOf(await requests.send({ method: 'PUT', name, body }));
      return put.ok ? await remove(name) : put;
    },
    locationOf: (name) =>
      `s3://${[target.bucket, target.prefix, name].filter((part) => part !== '').join('/')}`,
    close: () => requests.close(),
  };
}

type Upload = {
  readonly requests: S3Requests;
  readonly name: string;
  readonly file: FileHandle;
  readonly size: number;
  readonly contentType: string;
};

async function putWhole({ requests, name, file, size, contentType }: Upload): Promise<Done> {
  const body = await readPart(file, 0, size);
  const headers = { 'content-type': contentType };
  const what: S3Request = { method: 'PUT', name, headers, body };
  return doneOf(await sendPatiently(requests, what, size));
}

async function putInParts(upload: Upload): Promise<Done> {
  const { requests, name, contentType } = upload;
  const headers = { 'content-type': contentType };
  const begun = await requests.send({ method: 'POST', name, query: { uploads: '' }, headers });
  if (!begun.ok) return begun;
  const uploadId = /<UploadId>([^<]{1,1024})<\/UploadId>/.exec(begun.text)?.[1];
  if (uploadId === undefined) return { ok: false, fault: misunderstood('no upload id') };
  const sent = await sendParts(upload, uploadId);
  const done = Array.isArray(sent) ? await complete(upload, uploadId, sent) : sent;
  // Otherwise the bucket would keep the parts, and its owner would pay for them.
  if (!done.ok) await requests.send({ method: 'DELETE', name, query: { uploadId } });
  return done;
}

/** @returns the parts' tags, in order */
async function sendParts(
  { requests, name, file, size }: Upload,
  uploadId: string,
): Promise<string[] | { readonly ok: false; readonly fault: StoreFault }> {
  const tags: string[] = [];
  for (let start = 0; start < size; start += partBytes) {
    const body = await readPart(file, start, Math.min(partBytes, size - start));
    const query = { partNumber: String(tags.length + 1), uploadId };
    const what: S3Request = { method: 'PUT', name, query, body };
    const answer = await sendPatiently(requests, what, body.length);
    if (!answer.ok) return answer;
    const { etag } = answer.headers;
    if (typeof etag !== 'string') return { ok: false, fault: misunderstood('a part without tag') };
    tags.push(etag);
  }
  return tags;
}

async function complete(
  { requests, name, size }: Upload,
  uploadId: string,
  tags: readonly string[],
): Promise<Done> {
  const parts = tags.map((tag, index) => {
    const etag = tag.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
    return `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`;
  });
  const text = `<CompleteMultipartUpload>${parts.join('')}</CompleteMultipartUpload>`;
  const what: S3Request = { method: 'POST', name, query: { uploadId }, body: Buffer.from(text) };
  return doneOf(await sendPatiently(requests, what, size));
}

/** Sends again after a failure that may pass. */
async function sendPatiently(
  requests: S3Requests,
  what: S3Request,
  bytes: number,
): Promise<S3Answer> {
  const timed = { ...what, timeoutMs: transferTimeoutMs(bytes) };
  for (const pauseMs of partPausesMs) {
    const answer = await requests.send(timed);
    // A store that took its whole time once would take it again.
    if (answer.ok || answer.fault.kind !== 'unreachable') return answer;
    await pause(pauseMs);
  }
  return await requests.send(timed);
}

async function readPart(file: FileHandle, start: number, length: number): Promise<Buffer> {
  const body = Buffer.alloc(length);
  for (let at = 0; at < length; ) {
    const { bytesRead } = await file.read(body, at, length - at, start + at);
    if (bytesRead === 0) throw new Error('the file became shorter while it was read');
    at += bytesRead;
  }
  return body;
}

function doneOf(answer: S3Answer, { isMissingFine = false } = {}): Done {
  if (answer.ok) return { ok: true };
  const isMissing = answer.status === 404 && answer.fault.code !== 'NoSuchBucket';
  return isMissing && isMissingFine ? { ok: true } : { ok: false, fault: answer.fault };
}

function misunderstood(what: string): StoreFault {
  return { kind: 'refused', code: 'unknown-answer', detail: `the store answers with ${what}` };
}
