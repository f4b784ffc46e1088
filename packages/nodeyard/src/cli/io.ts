/** Where a command writes. */
export interface Io {
  out(text: string): void;
  err(text: string): void;
  /** Whether stderr is a terminal: people read the log there, not machines. */
  readonly isTerminal: boolean;
  /** Asks whoever sits there and gives the line that comes back; undefined: nobody does. */
  ask(question: string): Promise<string | undefined>;
  /** Columns for help texts. */
  readonly columns: number;
}
