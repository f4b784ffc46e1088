/** Where the environment says that the statsd server is; undefined: figures are not sent (docs/contract/operations.md, "Statsd"). */
export function statsdServer(
  env: Readonly<Record<string, string | undefined>>,
): { readonly host: string; readonly port: number } | { readonly problem: string } | undefined {
  const { STATSD_HOST: host = "", STATSD_PORT: port = "" } = env;
  if (host === "" && port === "") return undefined;
  const number = port === "" ? 8125 : Number(port);
  if (!/^\d*$/.test(port) || number < 1 || number > 65_535)
    return { problem: `STATSD_PORT is ${JSON.stringify(port)}: give a port, 1 to 65535` };
  return { host: host === "" ? "localhost" : host, port: number };
}
