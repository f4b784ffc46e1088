/** Every counter of the program: its meaning in one line. An unregistered name does not compile. */
export const counterNames = {
  "view.records_skipped": "Records that made no sense, by kind and error code",
  "scheduler.turns": "Turns of the scheduler's loop",
  "launcher.requests": "Requests that ended here, by outcome",
  "launcher.launches": "Launch attempts that ended, by provider and result",
  "launcher.breakers": "Breakers that opened or closed, by provider and change",
  "launcher.label_budgets":
    "Labels whose budget of failed launches was spent, or that work again, by label and change",
  "launcher.slots":
    "Slots of backing nodes claimed, lost to another launcher or freed, by provider and change",
  "launcher.backing_nodes": "Backing nodes asked for, adopted, failed or released, by provider and change",
  "launcher.deletes": "Node deletions that ended, by provider and result",
  "launcher.dead_letters": "Nodes marked because they could not be deleted in many tries, by provider",
  "launcher.notices_failed": "Notices to drivers that failed or were late, by provider and notice",
  "launcher.provider_silent": "Questions to drivers that were not answered in time, by provider and call",
  "launcher.vanished": "Ready nodes taken out because their machines were gone, by provider",
  "launcher.leaked": "Leaked resources deleted, by provider and type",
  "launcher.leak_brake": "Leak sweeps stopped because they would have deleted too much, by provider",
  "launcher.fence_lost": "Work given up because a lock or a record was no longer ours, by kind",
  "builder.builds": "Image builds that ended, by image and result",
  "builder.uploads": "Image uploads that ended, by provider and result",
  "builder.retired": "Uploads, builds and local files removed, by kind",
  "builder.canaries": "Trials of builds that ended, by image and verdict",
  "builder.leak_brake": "Looks for images without a record that would have deleted too much, by provider",
  "builder.unexpected": "Errors of builders that no code expected, by place",
  "launcher.unexpected": "Errors that no code expected, by place",
} as const;

export type CounterName = keyof typeof counterNames;

/** Counters of one process, by name and labels. */
export class Counters {
  readonly #values = new Map<
    string,
    { readonly name: CounterName; readonly labels: Readonly<Record<string, string>>; value: number }
  >();

  add(name: CounterName, by: number, labels: Readonly<Record<string, string>> = {}): void {
    const key = `${name} ${JSON.stringify(labels)}`;
    const known = this.#values.get(key);
    if (known === undefined) this.#values.set(key, { name, labels, value: by });
    else known.value += by;
  }

  /** The sum of a counter over all labels that contain `labels`. */
  value(name: CounterName, labels: Readonly<Record<string, string>> = {}): number {
    let sum = 0;
    for (const entry of this.#values.values()) {
      if (entry.name !== name) continue;
      if (Object.entries(labels).every(([key, wanted]) => entry.labels[key] === wanted)) sum += entry.value;
    }
    return sum;
  }

  list(): readonly {
    readonly name: CounterName;
    readonly labels: Readonly<Record<string, string>>;
    readonly value: number;
  }[] {
    return [...this.#values.values()];
  }
}
