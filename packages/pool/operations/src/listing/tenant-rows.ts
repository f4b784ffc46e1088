import type { TenantUse } from "@nodeyard/asking";
import { roundAmount } from "@nodeyard/model";
import { iso } from "../index.ts";
import { type Column, columns, jsonOnly } from "./columns.ts";
import { about, type Fields, maybe, moment, number, oneOf, text, whole } from "./fields.ts";

/** A tenant, or a client of a tenant, for programs. */
export const tenantFields: Fields<TenantUse> = {
  id: [text, ({ tenant, client }) => JSON.stringify([tenant, client])],
  tenant: [about(maybe, "null: of requests without a tenant"), ({ tenant }) => tenant],
  client: [about(maybe, "null: all clients of the tenant together"), ({ client }) => client],
  nodes: [about(whole, "of all pools that are allocated to its requests"), ({ nodes }) => nodes],
  waiting: [about(whole, "requests that are not accepted"), ({ waiting }) => waiting],
  weight: [
    (z) => z.int().nullable().describe("null: requests are served by age, as there are no `shares`"),
    ({ weight }) => weight,
  ],
  load: [
    (z) => z.number().nullable().describe("nodes by weight: who has less is served first"),
    ({ nodes, weight }) => (weight === null ? null : roundAmount(nodes / weight)),
  ],
  cost: [
    (z) =>
      z
        .array(z.object({ per_hour: z.number(), currency: z.string() }))
        .describe("of its nodes, as far as their prices are known"),
    ({ perHour }) =>
      Object.entries(perHour).map(([currency, amount]) => ({ per_hour: roundAmount(amount), currency })),
  ],
  budget: [
    (z) =>
      z
        .object({
          ...{ amount: number(z), currency: text(z), spent: number(z) },
          unpriced: z
            .int()
            .describe("nodes of the month that cost nothing, because their price is not known"),
          level: oneOf(["free", "near", "used"])(z).describe("near: four fifths are spent"),
          month: text(z),
          begins_anew: moment(z),
        })
        .nullable()
        .describe("of this month; null: there is none, and clients never have one"),
    ({ budget }) => {
      if (budget === null) return null;
      const { amount, currency, spent, unpriced, level, month, until } = budget;
      return { amount, currency, spent: roundAmount(spent), unpriced, level, month, begins_anew: iso(until) };
    },
  ],
};

/** Columns of `list --tenants`. */
export const tenantColumns: readonly Column[] = [
  { heading: "Tenant", key: "tenant", show: ({ tenant }) => `${tenant ?? "(none)"}` },
  { heading: "Client", key: "client", show: ({ client }) => `${client ?? "(all)"}` },
  ...columns({ Nodes: "nodes", Weight: "weight", "By Weight": "load", Waiting: "waiting" }),
  {
    heading: "Per Hour",
    key: "cost",
    show: ({ cost }) =>
      (cost as readonly { readonly per_hour: number; readonly currency: string }[])
        .map(({ per_hour, currency }) => `${per_hour} ${currency}`)
        .join(", "),
  },
  {
    heading: "Budget",
    key: "budget",
    show: ({ budget }) => {
      if (budget === null) return "";
      const { spent, amount, currency, level } = budget as Readonly<Record<string, unknown>>;
      return `${spent} of ${amount} ${currency}${level === "free" ? "" : ` (${level})`}`;
    },
  },
];

/** What `--json` shows besides the columns. */
export const tenantJson = jsonOnly("id");
