import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { patient } from "../patience.ts";

/** What the WSGI filter in front of a service does with matching calls. */
export interface ApiFault {
  readonly service?: "nova" | "neutron" | "glance";
  readonly method?: string;
  /** Regular expression over the path. */
  readonly path?: string;
  /** Seconds. */
  readonly delay?: number | readonly [number, number];
  readonly status?: number;
  /** Share of the calls, 0 to 1. */
  readonly rate?: number;
  readonly headers?: Readonly<Record<string, string | number>>;
}

/** What goes wrong at a compute host; seconds and shares. */
export interface HostFaults {
  readonly spawn_delay?: number | readonly [number, number];
  readonly destroy_delay?: number | readonly [number, number];
  readonly spawn_error_rate?: number;
  readonly spawn_error?: string;
  readonly destroy_error_rate?: number;
}

/** Faults of the control plane for one project; read again at each call. */
export interface Faults extends HostFaults {
  readonly bind_error_rate?: number;
  /** Per compute host. */
  readonly hosts?: Readonly<Record<string, HostFaults>>;
  readonly api?: readonly ApiFault[];
}

const HERE = fileURLToPath(new URL(".", import.meta.url));
/** Installing takes minutes on a slow mirror. */
const UP_MS = patient(900_000);

/**
 * A real control plane (keystone, placement, glance, neutron, cinder and nova of Debian's packages, as plain processes on loopback)
 * as one project sees it. Suites with projects of their own do not disturb one another, as long as they do not stop its processes.
 */
export class OpenstackSite {
  readonly folder: string;
  readonly port: number;
  readonly name: string;
  /** The project's id. */
  readonly project: string;

  private constructor(folder: string, port: number, name: string, role: string) {
    this.folder = folder;
    this.port = port;
    this.name = name;
    // run.sh has started it already, for all suites.
    if (!process.env.NODEYARD_OPENSTACK_UP) this.#script("up.sh", { NODEYARD_OPENSTACK_VERIFY: "0" });
    const words = [join(HERE, "plane/py/project.py"), folder, name, role];
    this.project = execFileSync("/usr/bin/python3", words, { encoding: "utf8", timeout: UP_MS }).trim();
    this.faults({});
  }

  /**
   * Starts it, or uses the one that NODEYARD_OPENSTACK_DIR names, and makes the project. With role "admin" its user may see and
   * delete what others have. Throws with the script's last lines.
   */
  static start(name = "nodeyard", role: "member" | "admin" = "member"): OpenstackSite {
    const folder = process.env.NODEYARD_OPENSTACK_DIR || mkdtempSync(join(tmpdir(), "nodeyard-openstack-"));
    return new OpenstackSite(folder, Number(process.env.NODEYARD_OPENSTACK_PORT || 15_000), name, role);
  }

  /** Has the clouds "nodeyard", which is the project, and "admin". */
  get cloudsYaml(): string {
    return join(this.folder, "projects", `${this.name}.yaml`);
  }

  /** One line of JSON for each call that nova answered and each server that nova stopped counting. */
  get log(): string {
    return join(this.folder, "projects", `${this.project}.log.jsonl`);
  }

  faults(faults: Faults): void {
    const file = join(this.folder, "projects", `${this.project}.faults.json`);
    writeFileSync(`${file}.new`, JSON.stringify(faults));
    renameSync(`${file}.new`, file);
  }

  /** Sends a signal to a service by its name in `run/`, "nova-api". */
  signal(service: string, signal: NodeJS.Signals): void {
    const pid = Number(readFileSync(join(this.folder, "run", `${service}.pid`), "utf8").split(" ")[0]);
    process.kill(pid, signal);
  }

  /** Restarts a killed service. */
  restart(): void {
    this.#script("up.sh", { NODEYARD_OPENSTACK_VERIFY: "0" });
  }

  stop(...options: readonly "--wipe"[]): void {
    this.#script("down.sh", {}, options);
  }

  #script(name: string, env: Readonly<Record<string, string>>, options: readonly string[] = []): void {
    execFileSync(join(HERE, name), options, {
      env: {
        ...process.env,
        NODEYARD_OPENSTACK_DIR: this.folder,
        NODEYARD_OPENSTACK_PORT: String(this.port),
        ...env,
      },
      stdio: ["ignore", "inherit", "inherit"],
      timeout: UP_MS,
    });
  }
}
