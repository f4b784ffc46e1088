import { Agent } from "node:http";
import { Agent as SecureAgent } from "node:https";
import { proxyOf } from "@nodeyard/driver";
import { NodeHttpHandler, type NodeHttpHandlerOptions } from "@smithy/node-http-handler";

/** As the SDK's own agents are. */
const AGENT = { keepAlive: true, maxSockets: 50 };

/** Options of the handler, with the authorities to believe in place of Node's. */
type Options = NodeHttpHandlerOptions & { readonly ca?: Buffer };

/** The SDK's handler, through the proxy that the environment names for an address, as the AWS command line reads it. */
export class ProxiedHandler extends NodeHttpHandler {
  readonly #options: Options;
  readonly #byProxy = new Map<string, NodeHttpHandler>();

  constructor(options: Options) {
    super({ ...options, ...(options.ca && { httpsAgent: new SecureAgent({ ...AGENT, ca: options.ca }) }) });
    this.#options = options;
  }

  override handle(...call: Parameters<NodeHttpHandler["handle"]>): ReturnType<NodeHttpHandler["handle"]> {
    const [{ protocol, hostname, port }] = call;
    const address = `${protocol}//${hostname}${port === undefined ? "" : `:${port}`}`;
    const proxy = proxyOf(address, process.env, "botocore");
    if (proxy === null) return super.handle(...call);
    const handler = this.#byProxy.get(proxy) ?? this.#through(proxy);
    this.#byProxy.set(proxy, handler);
    return handler.handle(...call);
  }

  #through(proxy: string): NodeHttpHandler {
    const { ca } = this.#options;
    const options = { ...AGENT, ...(ca && { ca }), proxyEnv: { HTTP_PROXY: proxy, HTTPS_PROXY: proxy } };
    const agents = { httpAgent: new Agent(options), httpsAgent: new SecureAgent(options) };
    return new NodeHttpHandler({ ...this.#options, ...agents });
  }

  override destroy(): void {
    for (const handler of this.#byProxy.values()) handler.destroy();
    super.destroy();
  }
}
