import { messageOf } from "@nodeyard/runtime";

/** Connections that are made with settings, such as certificates, which change while the process runs. */
export class Connections<Settings, T extends { close(): Promise<void> }> {
  readonly #open: (settings: Settings) => T;
  #present: { readonly key: string; readonly made: T } | undefined;

  constructor(open: (settings: Settings) => T) {
    this.#open = open;
  }

  /** Those for the settings: new ones when they differ from the last. Requests under way on the former ones are completed. */
  of(settings: Settings): T {
    const key = JSON.stringify(settings);
    if (this.#present?.key === key) return this.#present.made;
    void this.#present?.made.close();
    const made = this.#open(settings);
    this.#present = { key, made };
    return made;
  }

  async close(): Promise<void> {
    await this.#present?.made.close();
  }
}

/** Whether a request may have failed because a certificate or its authority was replaced: the files may have the new one. */
export function isCertificateError(error: unknown): boolean {
  return /certificate|self.signed/i.test(messageOf(error));
}
