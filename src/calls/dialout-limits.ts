// The longest times that a dial-out request may ask for. Work that must outlive every call uses
// them too.

export const maxRingTimeoutMs = 180_000;
export const maxQueueTimeoutMs = 3_600_000;
/** For calls under a rule set with hours, which may wait over a weekend. */
export const maxHeldQueueTimeoutMs = 72 * 3_600_000;
