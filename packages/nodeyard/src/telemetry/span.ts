/** A part of a trace that has ended, whoever takes it. Times are milliseconds since the epoch. */
export interface Span {
  /** 32 hexadecimal digits. */
  readonly trace: string;
  /** 16 hexadecimal digits. */
  readonly id: string;
  /** The span that it is a part of; absent: it is the whole. */
  readonly parent?: string;
  readonly name: string;
  readonly start: number;
  readonly end: number;
  readonly attributes: Readonly<Record<string, string | number | undefined>>;
  /** Why it failed; absent: it did not. */
  readonly error?: string;
}
