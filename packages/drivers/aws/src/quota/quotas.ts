import { type Clock, type Resources, SharedValue } from "@nodeyard/driver";
import { type Aws, allPages } from "../client/index.ts";
import { STORAGE_CODES } from "./codes.ts";

/** Quotas change rarely, by request. The launcher caches them too. */
const FRESH_MS = 30_000;
const GIB_PER_TIB = 1_024;

/** Quotas of an account by code, as Service Quotas applies them: instances in vCPUs, storage in GiB. */
export class Quotas {
  readonly #applied: SharedValue<Resources>;

  constructor(aws: Aws, clock: Clock) {
    this.#applied = new SharedValue({
      clock,
      what: "list of service quotas",
      freshMs: FRESH_MS,
      staleMs: FRESH_MS,
      load: async (signal) => {
        const lists = await Promise.all(["ec2", "ebs"].map((service) => listQuotas(aws, service, signal)));
        return Object.assign({}, ...lists) as Resources;
      },
    });
  }

  /**
   * Quotas with one of `codes`, as far as the account has them: a code that is missing in the result is not limited. Rejects with
   * AccessDenied when the credential may not read them.
   */
  async of(codes: ReadonlySet<string>, signal: AbortSignal): Promise<Resources> {
    const applied = Object.entries(await this.#applied.get(signal));
    return Object.fromEntries(applied.filter(([code]) => codes.has(code)));
  }

  close(): void {
    this.#applied.close();
  }
}

/** Applied quotas of a service ("ec2", "ebs") by code. */
async function listQuotas(aws: Aws, ServiceCode: string, signal: AbortSignal): Promise<Resources> {
  const listed = await allPages(
    (token) => aws.quotas((quotas, to) => quotas.listServiceQuotas({ ServiceCode, ...token }, to), signal),
    ({ Quotas: page }) => page,
  );
  const limits: Record<string, number> = {};
  for (const { QuotaCode: code, Value: value } of listed)
    if (code !== undefined && value !== undefined)
      limits[code] = STORAGE_CODES.has(code) ? value * GIB_PER_TIB : value;
  return limits;
}
