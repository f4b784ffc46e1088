/**
 * Orders documents. Signed documents have the epoch of their writer and a number that grows; those of PLC have epoch 0
 * and their timestamp, so that the first signed document ends the reign of timestamps for good.
 */
export interface Version {
  readonly epoch: number;
  readonly number: number;
}

export const NO_VERSION: Version = { epoch: 0, number: 0 };

/** Negative when `a` is older than `b`. */
export function compareVersions(a: Version, b: Version): number {
  return a.epoch - b.epoch || a.number - b.number;
}

export function versionText({ epoch, number }: Version): string {
  return epoch === 0 ? String(number) : `${epoch}.${number}`;
}
