import type {
  CreateOrder,
  ExternalId,
  InventoryItem,
  LabelConfig,
  Machine,
  PoolConfig,
  Provider,
  Purpose,
  Resource,
  Tag,
  UploadOrder,
} from "@nodeyard/driver";
import { asDriverError, DriverError, runSteps, type Step, type StepContext } from "@nodeyard/driver";
import type { Clock } from "@nodeyard/runtime";

/** What the suite needs of a driver and of its cloud. Made anew for each test. */
export interface ConformanceRig {
  readonly clock: Clock;
  /** The provider's name in the configuration; tags carry it. */
  readonly providerName: string;
  /** A pool whose label works: `label` is among its labels. */
  readonly pool: PoolConfig;
  readonly label: LabelConfig;
  /** Opens the same provider on the same cloud, as another process or another installation would. */
  open(installation: string, purpose?: Purpose): Promise<Provider>;
  /** What was written in the cloud so far, by anybody: a value that differs after each write. */
  writes?(): Promise<unknown>;
  /** Opens a provider of the same name that looks in another region, cloud, cluster or folder. */
  openElsewhere?(installation: string): Promise<Provider>;
  /** Runs `work` to its end; a virtual clock must be advanced meanwhile. */
  drive<T>(work: Promise<T>): Promise<T>;
  /** Waits until everything sent to the cloud has taken effect and is visible. */
  settle(): Promise<void>;
  /** All resources in the cloud, immediately and unfiltered. Default: the provider's list after `settle`. */
  truth?(): Promise<readonly Resource[]>;
  /** Uses up the quota, so that the next create must fail with kind `quota`. */
  fillQuota?(): Promise<void>;
  /** Makes the next list fail; what it returns is awaited. */
  breakList?(): unknown;
  /** From now on the cloud refuses the credential, whatever is asked with it. */
  refuse?(): Promise<void>;
  /** The next call that makes a machine takes no effect and is never answered. */
  silence?(): Promise<void>;
  /** From now on every call fails with an error that quotes what the provider logs in with. Returns those texts. */
  quoteSecrets?(): Promise<readonly string[]>;
  /** Makes the cloud answer the next deletion of a machine that there is none, though there is. */
  denyRemoval?(): Promise<void>;
  /** Removes the tag of a machine, as a person may. */
  loseTag?(machine: Resource): Promise<void>;
  /** From now on the cloud's lists have no machine, though machines are there. Returns what puts them back. */
  emptyList?(): Promise<() => Promise<unknown>>;
  /** Why a fault cannot happen to the driver, for each that the rig cannot make. */
  readonly cannot?: Readonly<Partial<Record<Fault, string>>>;
  /** Makes a machine without a tag of Nodeyard. */
  makeForeign?(): Promise<void>;
  /** The provider offers suspension. */
  readonly suspends?: boolean;
  /** Whether a machine runs and answers, where the rig can tell. */
  answers?(machine: Machine): Promise<boolean>;
  /** Makes the host of an inventory item unreachable, or reachable again. */
  setAlive?(item: InventoryItem, alive: boolean): Promise<void>;
  /** An image on this host in a format that the provider accepts. Absent: the image store is not tested. */
  image?(): Promise<Pick<UploadOrder, "file" | "format" | "size" | "sha256" | "md5" | "own">>;
  /** Ends the cloud. Called once, also after a test that failed. */
  stop(): Promise<void>;
}

/** What clouds do to a driver that launches. A rig makes each, or says why it cannot happen. */
export const FAULTS = [
  "openElsewhere",
  "writes",
  "refuse",
  "silence",
  "quoteSecrets",
  "denyRemoval",
  "loseTag",
  "emptyList",
] as const;
type Fault = (typeof FAULTS)[number];

/** The functions of a test runner that the suite uses; those of vitest fit. */
export interface TestKit {
  describe(name: string, body: () => void): void;
  test(name: string, body: () => Promise<void>): void;
  expect(value: unknown): {
    toEqual(expected: unknown): void;
    toBe(expected: unknown): void;
    toBeGreaterThan(expected: number): void;
    toBeInstanceOf(expected: unknown): void;
  };
}

/** Two installations that share one cloud. */
export const INSTALLATION = "6a1f6d1e-0f5e-4a62-9d51-6f3f0d8f5b01";
export const OTHER_INSTALLATION = "c2c4f8d0-3b7a-4d0e-8e0f-2a4f4f0b9e02";

/** Kinds of errors after which launchers try again. */
const TEMPORARY: readonly DriverError["kind"][] = ["transient", "timeout"];

/** Wraps a test body that gets its own bench. */
export type With = (body: (bench: Bench) => Promise<void>) => () => Promise<void>;

/** Calls for the tests, for one rig and one installation. */
export class Bench {
  readonly rig: ConformanceRig;
  readonly installation: string;

  constructor(rig: ConformanceRig, installation = INSTALLATION) {
    this.rig = rig;
    this.installation = installation;
  }

  /** Opens the provider as a new process would. */
  open(purpose: Purpose = "serve"): Promise<Provider> {
    return this.rig.drive(this.rig.open(this.installation, purpose));
  }

  tag(nodeId: string): Tag {
    const { providerName: provider, pool } = this.rig;
    return { installation: this.installation, provider, pool: pool.name, nodeId };
  }

  /** An order as the launcher makes it, without an uploaded image: the label has to use an image of the cloud, or none. */
  order(nodeId: string, attempt = 1): CreateOrder {
    const { pool, label } = this.rig;
    return {
      tag: this.tag(nodeId),
      hostname: `np${nodeId}`,
      pool,
      label,
      az: null,
      imageExternalId: null,
      request: REQUEST,
      attempt,
    };
  }

  /** Creates a machine in the way of the launcher, with new attempts after temporary errors. Returns the machine and the saved id. */
  async create(provider: Provider, nodeId: string, saved: ExternalId | null = null, again = TEMPORARY) {
    let externalId = saved;
    const save = async (id: ExternalId) => {
      externalId = id;
    };
    const work = (attempt: number) =>
      this.run<Machine>((context) => provider.create(this.order(nodeId, attempt), context), externalId, save);
    return { machine: await this.persist(work, again), externalId };
  }

  async remove(provider: Provider, nodeId: string, id: ExternalId | null, again = TEMPORARY): Promise<void> {
    const work = () => this.run<void>((context) => provider.remove(this.tag(nodeId), context), id);
    await this.persist(work, again);
  }

  async suspend(provider: Provider, nodeId: string, id: ExternalId | null): Promise<void> {
    const { suspension } = provider.offers!;
    await this.persist(() => this.run<void>((context) => suspension!.suspend(this.tag(nodeId), context), id));
  }

  wake(provider: Provider, nodeId: string, id: ExternalId | null): Promise<Machine> {
    const { suspension } = provider.offers!;
    return this.persist(() =>
      this.run<Machine>((context) => suspension!.wake(this.order(nodeId), context), id),
    );
  }

  /** A call that is not to fail; temporary errors are repeated, as launchers do. */
  call<T>(call: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return this.persist(() => this.rig.drive(call(new AbortController().signal)));
  }

  /** The instances in the cloud that carry the tag. */
  async machinesOf(provider: Provider, nodeId: string): Promise<readonly Resource[]> {
    return (await this.truth(provider)).filter(
      ({ type, tag }) =>
        type === "instance" && tag?.nodeId === nodeId && tag.installation === this.installation,
    );
  }

  /** What the cloud has, past the delays of its listings where the rig can tell. */
  async truth(provider: Provider): Promise<readonly Resource[]> {
    if (this.rig.truth !== undefined) return this.rig.truth();
    await this.rig.settle();
    return this.call((signal) => provider.list(signal));
  }

  /** Repeats `work` after errors of the kinds `again`. */
  async persist<T>(work: (attempt: number) => Promise<T>, again = TEMPORARY): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await work(attempt);
      } catch (error) {
        // A bound that a cloud which fails calls at random does not reach.
        if (!(error instanceof DriverError && again.includes(error.kind)) || attempt >= 50) throw error;
      }
    }
  }

  /** The error of `work`, which must be a DriverError. */
  async failure(work: Promise<unknown>): Promise<DriverError> {
    try {
      await this.rig.drive(work);
    } catch (error) {
      if (error instanceof DriverError) return error;
      throw asDriverError(error, "an error without a type");
    }
    throw new Error("the call should have failed");
  }

  run<T>(
    start: Parameters<typeof runSteps<T>>[0],
    externalId: ExternalId | null,
    save: (id: ExternalId) => Promise<void> = async () => {},
  ): Promise<T> {
    const { clock } = this.rig;
    const signal = new AbortController().signal;
    return this.rig.drive(runSteps<T>(start, { clock, signal, externalId, save }));
  }

  /**
   * Runs steps up to yield number `yields` and drops them there, as a killed process would. With `abort` it aborts the following step
   * instead. A step that fails ends the run too, because the driver under test may fail at random.
   */
  async cutOff<T>(
    start: (context: StepContext) => AsyncGenerator<Step, T, void>,
    yields: number,
    { stored = false, abort = false }: { readonly stored?: boolean; readonly abort?: boolean },
  ): Promise<{ readonly externalId: ExternalId | null; readonly ended: boolean }> {
    const controller = new AbortController();
    const steps = start({ signal: controller.signal, externalId: null });
    let externalId: ExternalId | null = null;
    for (let count = 0; count < yields; count++) {
      const next = await attempt(this.rig.drive(steps.next()));
      if (next === undefined || next.done) return { externalId, ended: next?.done === true };
      if (stored) externalId = next.value.save?.externalId ?? externalId;
    }
    if (abort) {
      const underWay = steps.next();
      controller.abort(new DriverError("timeout", "the test gives up"));
      await attempt(this.rig.drive(underWay));
      await attempt(this.rig.drive(steps.return(undefined as never)));
    }
    return { externalId, ended: false };
  }
}

/** Undefined when the step failed. */
async function attempt<T>(next: Promise<IteratorResult<Step, T>>) {
  try {
    return await next;
  } catch (error) {
    if (error instanceof DriverError) return undefined;
    throw error;
  }
}

/** A request with every optional field empty. */
const REQUEST: CreateOrder["request"] = {
  id: "100-0000000001",
  labels: ["conformance"],
  requestor: "conformance",
  requestorData: null,
  relativePriority: 0,
  eventId: null,
  createdTime: null,
  tenantName: null,
};
