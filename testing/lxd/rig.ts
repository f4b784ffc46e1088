import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { HttpRequest, LabelConfig, PoolConfig, Wire } from "@nodeyard/driver";
import { createLxdDriver, type LxdProviderConfig, lxdConfig, thisHost } from "@nodeyard/driver-lxd";
import type { ConformanceRig } from "@nodeyard/driver-testkit";
import { systemClock } from "@nodeyard/runtime";
import { contextOf, output, uploadOf } from "../qemu/index.ts";
import { lxdImage } from "./image.ts";
import type { LxdServer } from "./server.ts";

/** Machines that a project takes. */
const MAX = 8;

/** A client certificate that the server trusts. `refuse` ends the trust. */
export class Trust {
  readonly cert: string;
  readonly key: string;
  readonly #server: LxdServer;

  private constructor(server: LxdServer, name: string) {
    this.#server = server;
    this.cert = join(server.folder, `${name}.crt`);
    this.key = join(server.folder, `${name}.key`);
  }

  static async make(server: LxdServer, name: string): Promise<Trust> {
    const trust = new Trust(server, name);
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
    const files = ["-keyout", trust.key, "-out", trust.cert];
    await output("openssl", [
      "req",
      "-x509",
      ...curve,
      "-nodes",
      ...files,
      "-days",
      "30",
      "-subj",
      `/CN=${name}`,
    ]);
    const certificate = readFileSync(trust.cert, "utf8").replaceAll(/-----.*-----|\n/g, "");
    await server.call("POST", "/1.0/certificates", { type: "client", name, certificate });
    return trust;
  }

  async refuse(): Promise<void> {
    const words = ["x509", "-in", this.cert, "-noout", "-fingerprint", "-sha256"];
    const fingerprint = (await output("openssl", words))
      .trim()
      .split("=")[1]!
      .replaceAll(":", "")
      .toLowerCase();
    await this.#server.call("DELETE", `/1.0/certificates/${fingerprint}`);
  }
}

/** Compiles a provider of the file by the driver; a finding is an error. */
export function compile(fields: Readonly<Record<string, unknown>>): LxdProviderConfig {
  const raw: Readonly<Record<string, unknown>> = { name: "big", driver: "lxd", ...fields };
  const names = (raw.pools as { labels: { name: string }[] }[]).flatMap((pool) => pool.labels);
  const findings = lxdConfig.schema.safeParse(raw);
  if (!findings.success) throw findings.error;
  const config = lxdConfig.load(raw, {
    labels: new Set(names.map(({ name }) => name)),
    diskimages: new Map([["built", { username: "root", pythonPath: "auto", shellType: null }]]),
    report({ path, message }) {
      throw new Error(`${path.join(".")}: ${message}`);
    },
  });
  if (config === undefined) throw new Error("the provider was refused");
  return config;
}

/** What happens to the next calls between driver and server. */
interface Faults {
  /** Answers a call in the place of the server; undefined: the server does. */
  answer?: ((request: HttpRequest) => Promise<string> | string | undefined) | undefined;
  isSilent?: boolean;
}

const refusal = (code: number, error: string) =>
  JSON.stringify({ type: "error", error, error_code: code, metadata: null });
const isList = ({ method, url }: HttpRequest) =>
  method === "GET" && new URL(url).pathname === "/1.0/instances";

/** A project of its own on the server, reached over TLS with a certificate of its own. `label` is laid over a small container. */
export async function lxdRig(
  server: LxdServer,
  label: Readonly<Record<string, unknown>> = {},
  elsewhere?: () => Promise<LxdServer>,
): Promise<ConformanceRig> {
  const project = `p${(projects++).toString()}`;
  const features = { "features.images": "true", "features.profiles": "false" };
  await server.call("POST", "/1.0/projects", {
    name: project,
    config: { ...features, "limits.instances": String(MAX) },
  });
  await server.addImage(project);
  const trust = await Trust.make(server, project);
  const pem = join(server.folder, "server.crt");
  writeFileSync(pem, readFileSync(join(server.folder, "lxd/server.crt")));
  const own = {
    "client-certificate": trust.cert,
    "client-key": trust.key,
    "server-certificate": pem,
    project,
  };
  const small = { name: "tiny", "cloud-image": "tiny", cores: 1, ram: 64, ...label };
  const rest = { "cloud-images": [{ name: "tiny" }], pools: [{ name: "main", labels: [small] }] };
  const config = compile({ server: server.address, ...own, ...rest });
  const [pool] = config.pools as readonly [PoolConfig];
  const faults: Faults = {};
  const wires: Pick<Wire, "close">[] = [];
  let writes = 0;
  const driver = createLxdDriver({
    ...thisHost,
    connect(route) {
      const wire = thisHost.connect(route);
      wires.push(wire);
      return {
        async send(request) {
          if (request.method !== "GET") writes++;
          const text = await faults.answer?.(request);
          return text === undefined ? wire.send(request) : { status: 200, headers: {}, text };
        },
        listen: wire.listen,
        close: () => wire.close(),
      };
    },
  });
  // A minute's silence is as long as a second.
  const clock: typeof systemClock = {
    ...systemClock,
    setTimer: (ms, fire) => systemClock.setTimer(faults.isSilent ? Math.min(ms, 1_000) : ms, fire),
  };
  const context = (installation: string) => ({ ...contextOf(installation), clock });
  const once = (matches: (request: HttpRequest) => boolean, text: string) => {
    faults.answer = (request) => {
      if (!matches(request)) return undefined;
      faults.answer = undefined;
      return text;
    };
  };
  const path = (name: string) => `/1.0/instances/${name}?project=${project}`;
  let foreign = 0;
  const makeForeign = async () => {
    const body = { name: `theirs-${foreign++}`, source: { type: "none" } };
    await server.call("POST", `/1.0/instances?project=${project}`, body);
  };
  let others: Trust | undefined;
  return {
    clock: systemClock,
    providerName: config.name,
    suspends: true,
    pool,
    label: pool.labels.get("tiny") as LabelConfig,
    open: (installation, purpose = "serve") => driver.open(config, { ...context(installation), purpose }),
    async openElsewhere(installation) {
      const other = await elsewhere!();
      others ??= await Trust.make(other, "other");
      const at = { "client-certificate": others.cert, "client-key": others.key };
      const certificate = join(other.folder, "lxd/server.crt");
      const all = compile({ server: other.address, ...at, "server-certificate": certificate, ...rest });
      return driver.open(all, context(installation));
    },
    drive: (work) => work,
    settle: async () => {},
    writes: async () => writes,
    makeForeign,
    async fillQuota() {
      for (let machine = 0; machine < MAX; machine++) await makeForeign();
    },
    image: async () => uploadOf((await lxdImage()).rootfs, "tar"),
    breakList: () => once(isList, refusal(500, "the database is away")),
    refuse: () => trust.refuse(),
    async silence() {
      faults.isSilent = true;
      faults.answer = ({ method, url, signal }) => {
        if (method !== "POST" || !url.includes("/instances")) return undefined;
        faults.answer = undefined;
        return new Promise<never>((_, reject) => {
          signal.addEventListener("abort", () => {
            faults.isSilent = false;
            reject(signal.reason);
          });
        });
      };
    },
    async denyRemoval() {
      once(({ method }) => method === "DELETE", refusal(404, "Instance not found"));
    },
    async loseTag({ id }) {
      const { config: keys, ...instance } = (await server.call("GET", path(String(id)))) as {
        config: object;
      };
      const kept = Object.entries(keys).filter(([key]) => !key.startsWith("user."));
      await server.call("PUT", path(String(id)), { ...instance, config: Object.fromEntries(kept) });
    },
    async emptyList() {
      const none = JSON.stringify({ type: "sync", metadata: [] });
      faults.answer = (request) => (isList(request) ? none : undefined);
      return async () => {
        faults.answer = undefined;
      };
    },
    cannot: { quoteSecrets: "TLS proves that the client has its key, which never leaves this host" },
    async stop() {
      // Tests that close their provider have closed its connections.
      for (const wire of wires) await wire.close().catch(() => {});
      const list = async (kind: string) =>
        (await server.call("GET", `/1.0/${kind}?project=${project}`)) as unknown as readonly string[];
      for (const one of await list("instances")) {
        await server
          .call("PUT", `${one.split("?")[0]}/state?project=${project}`, { action: "stop", force: true })
          .catch(() => {});
        await server.call("DELETE", one.includes("?") ? one : `${one}?project=${project}`);
      }
      for (const one of await list("images"))
        await server.call("DELETE", `${one.split("?")[0]}?project=${project}`);
      await server.call("DELETE", `/1.0/projects/${project}`);
    },
  };
}

let projects = 0;
