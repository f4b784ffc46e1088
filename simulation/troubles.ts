import type { Random } from "@nodeyard/runtime";
import { LauncherProcess } from "./process.ts";
import type { Scene } from "./run.ts";
import { VARIANTS } from "./setting.ts";

/** What befalls the launchers of a run: crashes, lost sessions and connections, operators, clocks. */
export class Troubles {
  crashes = 0;
  readonly #scene: Scene;
  readonly #random: Random;
  readonly #seed: number;
  readonly #going = new Set<Promise<unknown>>();

  constructor(scene: Scene, random: Random, seed: number) {
    this.#scene = scene;
    this.#random = random;
    this.#seed = seed;
  }

  start(): void {
    const { processes } = this.#scene;
    const number = processes.length;
    processes.push(new LauncherProcess(`launcher-${number}`, this.#seed * 1_000 + number, this.#scene));
  }

  happen(): void {
    const alive = this.#scene.processes.filter((each) => !each.dead);
    const victim = alive[Math.floor(this.#random.float() * alive.length)]!;
    const kind = this.#random.float();
    if (kind < 0.3) {
      this.crashes++;
      victim.crash();
      this.start();
    } else if (kind < 0.5) victim.tree.expire();
    else if (kind < 0.65) victim.tree.disconnect();
    else if (kind < 0.75) this.#partition(victim);
    else if (kind < 0.85) this.#reload(VARIANTS[Math.floor(this.#random.float() * VARIANTS.length)]!);
    else if (kind < 0.92) this.#scene.clock.jump((this.#random.float() - 0.5) * 600_000);
    else {
      this.#note(victim.close());
      this.start();
    }
  }

  /** The operator leaves everything as it should be. */
  async end(): Promise<void> {
    this.#reload(VARIANTS[0]!);
    for (const each of this.#scene.processes) if (!each.dead) each.tree.reconnect();
  }

  #partition(victim: LauncherProcess): void {
    victim.tree.disconnect(true);
    this.#scene.clock.setTimer(this.#random.float() * 10_000, () => victim.tree.reconnect());
  }

  #reload(config: (typeof VARIANTS)[number]): void {
    this.#scene.config = config;
    for (const each of this.#scene.processes) if (!each.dead) each.reconfigure(config);
  }

  #note(work: Promise<unknown>): void {
    this.#going.add(work);
    void work.finally(() => this.#going.delete(work));
  }
}
