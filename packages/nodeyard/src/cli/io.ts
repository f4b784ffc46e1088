/** Where a command writes. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  /** Whether stderr is a terminal: people read the log there, not machines. */
  readonly isTerminal: boolean;
  /** Columns for help texts. */
  readonly columns: number;
}
