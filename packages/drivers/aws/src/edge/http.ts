import { readFileSync } from "node:fs";
import { Agent } from "node:http";
import { Agent as SecureAgent } from "node:https";
import { proxyOf } from "@nodeyard/driver";
import { loadSharedConfigFiles } from "@smithy/core/config";
import { NodeHttpHandler, type NodeHttpHandlerOptions } from "@smithy/node-http-handler";

// What boto3, and so Nodepool, follows of AWS's files and variables, and Amazon's SDK for Node does not.

/** As the SDK's own agents are. */
const AGENT = { keepAlive: true, maxSockets: 50 };

type Handle = NodeHttpHandler["handle"];

/** The SDK's handler, through the proxy that the environment names for an address, as the AWS command line reads it. */
export class ProxiedHandler {
  readonly #options: NodeHttpHandlerOptions;
  readonly #ca: Buffer | undefined;
  /** By proxy; null: none. */
  readonly #handlers = new Map<string | null, NodeHttpHandler>();

  /** `ca`: the authorities to believe in place of Node's. */
  constructor(options: NodeHttpHandlerOptions, ca?: Buffer) {
    this.#options = options;
    this.#ca = ca;
  }

  handle(...call: Parameters<Handle>): ReturnType<Handle> {
    const [{ protocol, hostname, port }] = call;
    const address = `${protocol}//${hostname}${port === undefined ? "" : `:${port}`}`;
    const proxy = proxyOf(address, process.env, "botocore");
    const handler = this.#handlers.get(proxy) ?? this.#through(proxy);
    this.#handlers.set(proxy, handler);
    return handler.handle(...call);
  }

  #through(proxy: string | null): NodeHttpHandler {
    const ca = this.#ca;
    const proxyEnv = proxy === null ? {} : { HTTP_PROXY: proxy, HTTPS_PROXY: proxy };
    const agent = { ...AGENT, ...(ca && { ca }), proxyEnv };
    const agents = { httpAgent: new Agent(agent), httpsAgent: new SecureAgent(agent) };
    return new NodeHttpHandler({ ...this.#options, ...agents });
  }

  destroy(): void {
    for (const handler of this.#handlers.values()) handler.destroy();
  }
}

/** Connections to a service: the profile's endpoint, where no variable has one, and a handler that believes the authorities of the files. */
export async function connectionOf(
  profile: string | null,
  service: string,
  options: NodeHttpHandlerOptions,
  Handler = ProxiedHandler,
) {
  const { env } = process;
  const { configFile, credentialsFile } = await loadSharedConfigFiles();
  const name = profile ?? "default";
  const section = { ...configFile[name], ...credentialsFile[name] };
  const variable = env[`AWS_ENDPOINT_URL_${service.toUpperCase()}`] || env.AWS_ENDPOINT_URL;
  const isIgnored = [env.AWS_IGNORE_CONFIGURED_ENDPOINT_URLS, section.ignore_configured_endpoint_urls];
  const own = section.services && configFile[`services.${section.services}`]?.[`${service}.endpoint_url`];
  const endpoint = variable || isIgnored.includes("true") ? undefined : own || section.endpoint_url;
  const bundle = env.AWS_CA_BUNDLE || section.ca_bundle;
  const requestHandler = new Handler(options, bundle ? readFileSync(bundle) : undefined);
  return { ...(endpoint && { endpoint }), requestHandler };
}
