// The slots of `call_totals`: quarters of an hour in UTC. Every time zone of today has an offset of
// whole quarters, so each of its days is a whole number of slots.

import { sql } from '../sql.ts';

export const slotMs = 900_000;

/** The slot in which a call was accepted, as an expression on `calls`. */
export const acceptedSlot = sql`date_bin('15 minutes', accepted_at, timestamptz '2000-01-01 00:00:00+00')`;

/**
 * The slot that a call belongs to in its campaign's figures, as an expression on `calls`. A call
 * may wait for days before it is dialled, so the answer counts, or else the end.
 */
export const reachedSlot = sql`date_bin('15 minutes', coalesce(answered_at, ended_at), timestamptz '2000-01-01 00:00:00+00')`;
