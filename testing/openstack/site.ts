import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

/** A rule of faults.json: what the WSGI filter in front of a service does with calls that fit. */
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

/** What the control plane does wrong; read anew at each call, seconds and shares. */
export interface Faults {
  readonly spawn_delay?: number | readonly [number, number];
  readonly destroy_delay?: number | readonly [number, number];
  readonly spawn_error_rate?: number;
  readonly spawn_error?: string;
  readonly destroy_error_rate?: number;
  readonly bind_error_rate?: number;
  readonly api?: readonly ApiFault[];
}

const HERE = fileURLToPath(new URL(".", import.meta.url));
/** Installing takes minutes on a slow mirror. */
const UP_MS = 900_000;

/** A real control plane: keystone, placement, glance, neutron and nova of Debian's packages, as plain processes on loopback. */
export class OpenstackSite {
  readonly folder: string;
  readonly port: number;

  private constructor(folder: string, port: number) {
    this.folder = folder;
    this.port = port;
  }

  /** Brings it up, or uses the one that NODEYARD_OPENSTACK_DIR names. Throws with the script's last lines. */
  static start(): OpenstackSite {
    const folder = process.env.NODEYARD_OPENSTACK_DIR || mkdtempSync(join(tmpdir(), "nodeyard-openstack-"));
    const port = Number(process.env.NODEYARD_OPENSTACK_PORT || 15_000);
    const site = new OpenstackSite(folder, port);
    site.#script("up.sh", { NODEYARD_OPENSTACK_VERIFY: "0" });
    site.faults({});
    return site;
  }

  get cloudsYaml(): string {
    return join(this.folder, "clouds.yaml");
  }

  faults(faults: Faults): void {
    writeFileSync(join(this.folder, "faults.json"), JSON.stringify(faults));
  }

  /** Sends a signal to a service by its name in `run/`, "nova-api". */
  signal(service: string, signal: NodeJS.Signals): void {
    const pid = Number(readFileSync(join(this.folder, "run", `${service}.pid`), "utf8").split(" ")[0]);
    process.kill(pid, signal);
  }

  /** Starts again what was killed. */
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
