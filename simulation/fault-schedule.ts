import type { Clock, Random } from "@nodeyard/runtime";
import { CLOUD_FAULTS, type CloudFault, CloudFaults } from "./cloud-faults.ts";
import { type CrashPoint, pointName, pointsOf, rarePointsOf } from "./effects.ts";
import type { Fault } from "./faults.ts";
import { LauncherProcess } from "./process.ts";
import type { Scene } from "./scene.ts";
import { budgetOf, budgetsOf, sharesOf, VARIANTS } from "./setting.ts";
import { between, pick, shuffled } from "./streams.ts";
import { TRAPS } from "./trap.ts";

/** How often each kind is in the deck that a run draws from. */
const DECK: Readonly<Partial<Record<Fault, number>>> = {
  crash: 1,
  "crash at an effect": 16,
  stop: 2,
  "session expired": 2,
  "session expired at a check": 3,
  "session expired at a create": 3,
  "lost reply, server behind": 8,
  disconnected: 2,
  "partition, short": 2,
  "partition, long": 2,
  "slow network": 2,
  frozen: 2,
  suspended: 2,
  "clock jump of one": 2,
  "clock jump of all": 1,
  "clock of one set by days": 1,
  "clock of all set by days": 1,
  reload: 2,
  "tree restart": 1,
  "followers lag": 4,
  "operator holds": 2,
  "operator deletes": 1,
  "operator retires": 2,
  "record damaged": 3,
  ...Object.fromEntries(CLOUD_FAULTS.map((fault) => [fault, 1])),
  "cloud makes nothing": 4,
  "cloud capacity": 2,
  "zone without room": 2,
  "type without room": 3,
};

const SIX_DAYS_MS = 6 * 86_400_000;

/** A trap that no process reaches is removed after this time, milliseconds. */
const TRAP_MS = 60_000;

function isTrap(fault: Fault): boolean {
  return (TRAPS as readonly Fault[]).includes(fault);
}

/** The faults of launchers, clouds and the tree in a run. */
export class FaultSchedule {
  readonly #scene: Scene;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #nextPoint: ReturnType<typeof pointsOf>;
  readonly #cloudFaults: readonly CloudFaults[];
  /** The next process that reaches the point dies. */
  readonly #traps = new Set<CrashPoint>();
  #deck: Fault[] = [];

  constructor(scene: Scene) {
    this.#scene = scene;
    this.#clock = scene.clock;
    this.#random = scene.stream("troubles");
    this.#nextPoint = pointsOf(scene.seed, scene.stream("crash points"));
    this.#cloudFaults = [...scene.clouds].map(
      ([name, cloud]) => new CloudFaults(cloud, scene.clock, scene.stream(`weather of ${name}`)),
    );
  }

  start(): void {
    const { processes, stream } = this.#scene;
    const number = processes.length;
    const seed = Math.floor(stream(`launcher ${number}`).float() * 2 ** 32);
    const started = new LauncherProcess(`launcher-${number}`, seed, this.#scene);
    processes.push(started);
    for (const point of this.#traps) this.#arm(started, point);
  }

  /** The next fault of the deck; each deck has its own order. */
  happen(): void {
    if (this.#deck.length === 0) {
      const all = Object.entries(DECK).flatMap(([fault, times]) => Array<Fault>(times).fill(fault as Fault));
      this.#deck = shuffled(this.#random, all);
    }
    this.#strike(this.#deck.pop()!);
  }

  /** One cloud deletes nothing until a node has a dead letter; then an operator asks for the deletion again. */
  deleteNothing(): void {
    this.#scene.count("deletes fail for long");
    const faults = this.#cloudFaults[this.#scene.seed % this.#cloudFaults.length]!;
    faults.deleteNothing();
    this.#scene.operator.onDeadLetter = () => faults.deleteAgain();
  }

  /** The operator restores the normal configuration and ends all faults. */
  end(): void {
    for (const point of this.#traps) this.#disarm(point);
    for (const faults of this.#cloudFaults) faults.clear();
    this.#scene.trap.disarm();
    this.#scene.followers.lagUntil = 0;
    this.reload(VARIANTS[0]!);
    for (const each of this.#scene.processes) if (!each.dead) each.tree.reconnect();
  }

  #strike(fault: Fault): void {
    if ((CLOUD_FAULTS as readonly Fault[]).includes(fault)) {
      if (!["cloud quota", "cloud capacity"].includes(fault)) this.#scene.count(fault);
      return pick(this.#random, this.#cloudFaults).strike(fault as CloudFault);
    }
    const awake = this.#scene.processes.filter((each) => each.awake);
    const victim = awake.length === 0 ? undefined : pick(this.#random, awake);
    if (victim === undefined) return;
    // These faults are counted when they strike.
    if (fault !== "crash at an effect" && !isTrap(fault)) this.#scene.count(fault);
    switch (fault) {
      case "crash":
        return this.#kill(victim);
      case "crash at an effect":
        return this.#trapNext();
      case "stop":
        void victim.close();
        return this.start();
      case "session expired":
        return victim.tree.expire();
      case "session expired at a check":
      case "session expired at a create":
      case "lost reply, server behind":
        return this.#scene.trap.arm(fault);
      case "disconnected":
        return victim.tree.disconnect();
      case "partition, short":
        return this.#partition(victim, 500, 3_500);
      case "partition, long":
        return this.#partition(victim, 4_500, 15_000);
      case "slow network":
        return void this.#scene.slow.set(
          victim.name,
          this.#clock.monotonic() + between(this.#random, 2_000, 10_000),
        );
      case "frozen":
      case "suspended":
        return this.#freeze(victim, fault === "suspended");
      case "clock jump of one":
        return this.#jumpOne(victim, (this.#random.float() - 0.5) * 600_000);
      case "clock jump of all":
        return this.#jump((this.#random.float() - 0.5) * 600_000);
      case "clock of one set by days":
        return victim.life.jump((this.#random.float() - 0.5) * SIX_DAYS_MS);
      case "clock of all set by days":
        return this.#jump((this.#random.float() - 0.5) * SIX_DAYS_MS);
      case "reload":
        return this.reload(pick(this.#random, VARIANTS));
      case "tree restart":
        return this.#restartTree();
      case "followers lag":
        this.#scene.followers.lagUntil = this.#clock.monotonic() + between(this.#random, 5_000, 30_000);
        return;
      case "operator holds":
        return this.#scene.operator.hold();
      case "operator deletes":
        return this.#scene.operator.delete();
      case "record damaged":
        return this.#scene.damaged.damage();
      case "operator retires":
        return this.#scene.operator.retire();
    }
  }

  #jump(ms: number): void {
    this.#scene.jumped += ms;
    this.#scene.check.jumped("", ms);
    this.#scene.clock.jump(ms);
  }

  #jumpOne(victim: LauncherProcess, ms: number): void {
    this.#scene.check.jumped(victim.name, ms);
    victim.life.jump(ms);
  }

  #kill(victim: LauncherProcess): void {
    victim.crash();
    this.start();
  }

  /** The first process that reaches one of the rare points of this seed dies. */
  trapRare(): void {
    for (const point of rarePointsOf(this.#scene.seed)) this.#setTrap({ ...point });
  }

  #trapNext(): void {
    const point = { ...this.#nextPoint() };
    this.#setTrap(point);
    this.#clock.setTimer(TRAP_MS, () => this.#disarm(point));
  }

  #setTrap(point: CrashPoint): void {
    this.#traps.add(point);
    for (const each of this.#scene.processes) this.#arm(each, point);
  }

  #arm(process: LauncherProcess, point: CrashPoint): void {
    process.traps.set(point, () => {
      this.#disarm(point);
      this.#scene.count("crash at an effect");
      this.#scene.countCrash(pointName(point));
      this.start();
    });
  }

  #disarm(point: CrashPoint): void {
    this.#traps.delete(point);
    for (const each of this.#scene.processes) each.traps.clear(point);
  }

  #partition(victim: LauncherProcess, least: number, most: number): void {
    victim.tree.disconnect(true);
    this.#clock.setTimer(between(this.#random, least, most), () => victim.tree.reconnect());
  }

  #freeze(victim: LauncherProcess, slept: boolean): void {
    const ms = between(this.#random, 1_000, 12_000);
    // A process that reconnected while suspended would receive events by a clock that stands still.
    victim.tree.reconnect();
    victim.freeze();
    this.#clock.setTimer(ms, () => {
      // After sleep the wall clock shows the passed time at once, the monotonic clock does not.
      victim.thaw(slept);
    });
  }

  /** Zuul and others retry in their clients: to them the tree is slow. */
  #restartTree(): void {
    const ms = between(this.#random, 100, 6_000);
    this.#scene.treeIsBackAt = this.#clock.monotonic() + ms;
    for (const each of this.#scene.processes) if (each.awake) each.tree.disconnect(true);
    this.#clock.setTimer(ms, () => {
      for (const each of this.#scene.processes) if (!each.dead) each.tree.reconnect();
    });
  }

  reload(config: (typeof VARIANTS)[number]): void {
    const { seed, troubled } = this.#scene;
    const changed = {
      ...config,
      shares: sharesOf(seed),
      budgets: budgetsOf(seed, troubled),
      failedLaunchesPerHour: budgetOf(seed, troubled),
    };
    this.#scene.config = changed;
    for (const each of this.#scene.processes) if (!each.dead) each.reconfigure(changed);
  }
}
