import {
  type Backup,
  HttpApi,
  type Known,
  type ListenAddress,
  type Page,
  type Readiness,
  type TlsFiles,
} from "@nodeyard/api";
import { type Config, type Finding, validateConfig, type WebappConfig } from "@nodeyard/config";
import { StatsdReporter, statsdServer, UdpSink } from "@nodeyard/legacy";
import { type Gauge, gaugeOf, PrometheusExporter, sliverGauges, standingGauges } from "@nodeyard/metrics";
import type { ProviderMachines } from "@nodeyard/operations";
import { defined, messageOf } from "@nodeyard/runtime";
import { Counters, type ProcessLog } from "@nodeyard/telemetry";
import { type Machine, VERSION } from "@nodeyard/telemetry/machine";
import { Drivers } from "./driver-registry.ts";
import { loadModule } from "./edge/load-module.ts";
import { ProcessError } from "./errors.ts";
import { HTTP_SOCKET } from "./http-socket.ts";
import type { Role } from "./role.ts";

/** Milliseconds that a page of figures waits for sliver machines, of which one that does not answer takes three seconds. */
const PAGE_MS = 5_000;

/** What the command line says of where a process is to be looked at. */
export interface FrontWish {
  /** `always`: where the configuration says, or would by its defaults. `named`: where it says. `never`. */
  readonly configured: "always" | "named" | "never";
  /** Overrides the configuration. */
  readonly tcp?: { readonly host: string; readonly port: number };
  readonly token?: string;
  /** Whether there is a Unix socket in the state folder, too. */
  readonly socket: boolean;
}

/** Where a process lets people and programs look at it. */
export interface ListenAddresses {
  /** Path of a Unix socket; absent: none. */
  readonly socket?: string;
  /** By TCP; absent: nowhere. */
  readonly tcp?: { readonly host: string; readonly port: number; readonly tls?: TlsFiles };
  /** Clients by TCP must show it; absent: none is needed, and who is not on this machine sees less. */
  readonly token?: string;
}

/** Where the wish of the command line and the configuration together say; without a wish nowhere. */
export function listenAddresses(
  wish: FrontWish | undefined,
  { port, listenAddress, isNamed, tls }: Omit<WebappConfig, "oidc">,
  stateFolder: string,
): ListenAddresses {
  if (wish === undefined) return {};
  const { configured, tcp, token, socket } = wish;
  const asConfigured = configured === "always" || (configured === "named" && isNamed);
  const place = tcp ?? (asConfigured ? { host: listenAddress, port } : undefined);
  return {
    ...(socket ? { socket: `${stateFolder}/${HTTP_SOCKET}` } : {}),
    ...(place === undefined ? {} : { tcp: { ...place, ...(tls && { tls }) } }),
    ...defined({ token }),
  };
}

/** What a front is made of. `config` is that of the start; later ones come by `reconfigured`. */
export interface FrontParts {
  readonly machine: Machine;
  readonly log: ProcessLog;
  readonly drivers: Drivers;
  readonly config: Config;
  /** Makes copies of the process's own tree; absent: it has none. */
  readonly backup?: () => Promise<Backup>;
}

/**
 * A process as seen from outside: HTTP, Prometheus and statsd, for the roles that run in it. Made before the roles and closed
 * after them, so that a start and a stop can be watched.
 */
export class Front {
  /** All that the process counts. */
  readonly counters = new Counters();
  readonly #parts: FrontParts;
  readonly #api: HttpApi;
  readonly #statsd: { readonly sink: UdpSink; readonly reporter: StatsdReporter } | undefined;
  /** In the order of their start; questions that only one can answer go to the first that can. */
  readonly #roles: Role[] = [];
  #prometheus: Promise<PrometheusExporter> | undefined;
  /** Address by TCP; undefined: there is none, or it was closed. */
  #tcp: string | undefined;
  #isGuarded = false;

  /** Listens, before anything else is done. Rejects with ListenError where it cannot by TCP. */
  static async open(places: ListenAddresses, parts: FrontParts): Promise<Front> {
    const front = new Front(parts);
    try {
      await front.#listen(places);
    } catch (error) {
      await front.close();
      throw error;
    }
    return front;
  }

  private constructor(parts: FrontParts) {
    this.#parts = parts;
    const { machine, log, config, backup } = parts;
    log.onDropped(() => this.counters.add("log.lines_dropped", 1));
    this.#api = new HttpApi({
      clock: machine.clock,
      log: log.area("api"),
      sources: {
        known: () => this.#roles[0]?.known,
        readiness: () => this.#readiness(),
        stuck: () => this.stuck(),
        work: () => this.#work(),
        providers: () => this.#roles.flatMap((role) => role.providers?.() ?? []),
        tenants: () => this.#roles.find((role) => role.tenants !== undefined)?.tenants?.(),
        history: () => this.#roles.flatMap((role) => role.history?.() ?? []),
        sliverMachines: () => this.#sliverMachines(),
        buildLog: async (range, waitMs) =>
          this.#roles.find((role) => role.buildLog !== undefined)?.buildLog?.(range, waitMs),
        checkConfig,
        survey: async (what, only) =>
          this.#roles.find((role) => role.survey !== undefined)?.survey?.(what, only),
        planConfig: async (text, days) =>
          this.#roles.find((role) => role.plan !== undefined)?.plan?.(text, days),
        audit: () => this.#roles.find(({ audit }) => audit !== undefined)?.audit,
        ...(backup && { backup }),
        metrics: () => this.#page(),
      },
    });
    this.#api.trust(config.webapp.oidc);
    this.#statsd = this.#startStatsd();
  }

  /** Whether sending metrics to a statsd server. */
  get tellsStatsd(): boolean {
    return this.#statsd !== undefined;
  }

  /** A figure may have changed: statsd gets it soon. */
  readonly changed = (): void => this.#statsd?.reporter.changed();

  /** A view has been read whole, and nothing has been done yet: events from here on are kept for clients that come back. */
  seen(known: Known): void {
    this.#api.seen(known);
  }

  /** Something runs now, and can be looked at. */
  add(role: Role): void {
    this.#roles.push(role);
    this.changed();
  }

  /** A configuration came into force: where nodes of this machine are handed out from now on, no listener stays open to them. */
  reconfigured(config: Config): void {
    this.#api.trust(config.webapp.oidc);
    const local = localProviders(config, this.#parts.drivers);
    if (this.#tcp === undefined || this.#isGuarded || local.length === 0) return;
    const address = this.#tcp;
    this.#tcp = undefined;
    this.#parts.log.error({ address, providers: local }, `${CLOSED}; it is closed`);
    void this.#api
      .leave(address)
      .catch((error) => this.#parts.log.warn({ address, error: messageOf(error) }, "closing it failed"));
  }

  /** Reads the certificates of its listeners again. If they are invalid, the former ones stay in use and the reload counts as failed. */
  reloadTls(): void {
    try {
      this.#api.reloadTls();
    } catch (error) {
      this.counters.add("config.reloads", 1, { result: "failed" });
      this.counters.level("config.last_reload_successful", 0, {});
      this.#parts.log.error({}, `${messageOf(error)}; the former certificate stays in use`);
    }
  }

  /** What does not go on, and only a restart would help, as /live says; undefined: nothing. */
  stuck(): string | undefined {
    for (const role of this.#roles) {
      const why = role.stuck();
      if (why !== undefined) return why;
    }
    return undefined;
  }

  /** Ends streams and connections. The roles are closed before. */
  async close(): Promise<void> {
    await this.#api.close();
    this.#statsd?.reporter.close();
    await this.#statsd?.sink.close();
  }

  /** Undefined when the environment names no server. Throws ProcessError when its value is no server. */
  #startStatsd() {
    const { machine, log } = this.#parts;
    const server = statsdServer(machine.env);
    if (server === undefined) return undefined;
    if ("problem" in server) throw new ProcessError("process.bad_statsd", server.problem);
    log.info(server, "sending metrics to a statsd server");
    const sink = new UdpSink(server, { ...machine, log });
    const shared = () => this.#roles.find((role) => role.shared !== undefined)?.shared;
    const reporter = new StatsdReporter({
      clock: machine.clock,
      sink,
      counters: this.counters,
      own: () => this.#roles.flatMap((role) => role.samples()),
      shared: {
        leading: () => shared()?.leading() === true,
        gauges: () => shared()?.gauges() ?? [],
      },
    });
    return { sink, reporter };
  }

  async #listen({ socket, tcp, token }: ListenAddresses): Promise<void> {
    const { log, config, drivers } = this.#parts;
    // The socket is for people at this machine; a process works without it.
    if (socket !== undefined) await this.#open({ socket }).catch((error) => log.warn({}, messageOf(error)));
    if (tcp === undefined) return;
    const local = localProviders(config, drivers);
    if (local.length > 0 && token === undefined) {
      log.warn({ ...tcp, providers: local }, `${CLOSED}; it is not opened`);
      return;
    }
    this.#isGuarded = token !== undefined;
    this.#tcp = await this.#open({ ...tcp, ...defined({ token }) });
  }

  async #open(place: ListenAddress): Promise<string> {
    this.#prometheus ??= PrometheusExporter.start(VERSION);
    await this.#prometheus;
    const address = await this.#api.listen(place);
    this.#parts.log.info({ address }, "the web interface listens");
    return address;
  }

  #readiness(): Readiness {
    if (this.#roles.length === 0) return { ready: false, why: "the process starts" };
    return (
      this.#roles.map((role) => role.readiness()).find(({ ready }) => !ready) ?? { ready: true, why: "" }
    );
  }

  /** The page of /metrics. */
  async #page(): Promise<Page> {
    this.#prometheus ??= PrometheusExporter.start(VERSION);
    const exporter = await this.#prometheus;
    // Seconds at most, also where a machine does not answer: below what Prometheus waits for a page (10 s).
    const slivers = sliverGauges(await this.#sliverMachines(PAGE_MS));
    return exporter.page(this.counters, [...this.#gauges(), ...slivers]);
  }

  async #sliverMachines(withinMs?: number): Promise<readonly ProviderMachines[]> {
    return (await Promise.all(this.#roles.map((role) => role.sliverMachines?.(withinMs) ?? []))).flat();
  }

  #work() {
    const own = this.#roles.flatMap((role) => role.work?.() ?? []);
    return this.#roles.some((role) => role.work !== undefined) ? own : undefined;
  }

  #gauges(): readonly Gauge[] {
    const known = this.#roles[0]?.known;
    const flag = (on: boolean | undefined) => (on === true ? 1 : 0);
    return [
      ...this.#roles.flatMap((role) => role.gauges()),
      ...(this.#statsd === undefined ? [] : [gaugeOf("statsd_lost", this.#statsd.sink.lost)]),
      ...(known === undefined ? [] : standingGauges(known.view)),
      gaugeOf("ready", flag(this.#readiness().ready)),
      gaugeOf("tree_connected", flag(known?.handles.tree.session().state === "connected")),
      gaugeOf("tree_clock_offset_seconds", (known?.handles.tree.clockOffset() ?? 0) / 1000),
      gaugeOf("view_complete", flag(known?.view.complete)),
    ];
  }
}

const CLOSED =
  "nodes of this machine could reach the web interface by TCP: name a token with --webapp-token FILE, or use the Unix socket in the state folder";

/** As `config-validate` does. Environment variables are not filled in, because findings quote values. */
async function checkConfig(text: string): Promise<readonly Finding[]> {
  const input = { text, path: "configuration", env: {}, drivers: new Drivers(loadModule) };
  return validateConfig(input).findings;
}

/**
 * Names of providers whose nodes run on this machine. Code in them is hostile and may reach what listens here, loopback included
 * (rule 11), so nothing may that does not ask for a token. Drivers say it of themselves.
 */
function localProviders({ providers }: Config, drivers: Drivers): readonly string[] {
  return providers
    .filter(({ driver }) => drivers.driver(driver).capabilities.local === true)
    .map(({ name }) => name);
}
