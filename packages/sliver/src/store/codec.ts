import { EMPTY_STATE, type SliverRecord, type State, type Traffic } from "../core/index.ts";

/** The state as text. */
export function encodeState(state: State): string {
  const { records, usedTickets, traffic, ...rest } = state;
  return JSON.stringify({
    ...rest,
    usedTickets: [...usedTickets],
    records: [...records.values()],
    traffic: [...traffic],
  });
}

/** The state that was encoded; undefined for what is none. Fields that a later minor version left out are the empty state's. */
export function decodeState(text: string): State | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { records, usedTickets, traffic = [], ...rest } = (value ?? {}) as Record<string, unknown>;
  if (!Array.isArray(records) || !Array.isArray(usedTickets) || !Array.isArray(traffic)) return undefined;
  return {
    ...EMPTY_STATE,
    ...(rest as Partial<State>),
    usedTickets: new Map(usedTickets as [string, number][]),
    records: new Map((records as SliverRecord[]).map((record) => [record.name, record])),
    traffic: new Map(traffic as [string, Traffic][]),
  };
}
