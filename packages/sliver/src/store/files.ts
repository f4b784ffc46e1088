/** The few calls that the store makes, so that a test can take the power away at each. Every one may reject. */
export interface StoreFiles {
  /** undefined when there is none of that name. */
  read(name: string): Promise<Uint8Array | undefined>;
  /** Only if there is none of that name; nobody else may read it. */
  create(name: string): Promise<OpenFile>;
  /** Replaces `to`, whole or not at all. */
  rename(from: string, to: string): Promise<void>;
  /** No error when there is none. */
  remove(name: string): Promise<void>;
  /** Makes names durable: what was created, renamed or removed. */
  syncFolder(): Promise<void>;
}

export interface OpenFile {
  write(bytes: Uint8Array): Promise<void>;
  /** Makes the content durable, not the name. */
  sync(): Promise<void>;
  close(): Promise<void>;
}
