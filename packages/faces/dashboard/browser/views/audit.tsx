import type { RowOf } from "@nodeyard/client";
import { call } from "../data/api.ts";
import { whoText } from "../data/format.ts";
import { Prose } from "../ui/facts.tsx";
import { Problem, Section, When } from "../ui/pieces.tsx";
import { useLoad } from "../ui/use.ts";

interface Audit {
  readonly items: readonly RowOf<"list_audit">[];
}

const SHOWN = 200;

/** Changes and refused attempts, newest first. */
export function AuditView() {
  const { data, error, loading, reload } = useLoad("audit", () =>
    call<Audit>("GET", `/v1/audit?sort=-id&limit=${SHOWN}`),
  );
  return (
    <>
      <header>
        <h1>Audit</h1>
        <button type="button" onClick={reload} disabled={loading}>
          Look again
        </button>
      </header>
      <Problem error={error} />
      <Section title={`What was changed, or refused, newest first: the last ${SHOWN}`}>
        {data?.items.length === 0 && (
          <p class="dim">
            Nothing yet. Holds, deletions, leases and builds appear here, each with who asked for it and why.
          </p>
        )}
        <ul class="lines">
          {data?.items.map(({ id, at, who, role, action, subject, why, status }) => (
            <li key={id}>
              <span class={status < 400 ? "state good" : "state bad"}>
                <span aria-hidden="true">{status < 400 ? "●" : "✕"}</span>{" "}
                {status < 400 ? "done" : `refused (${status})`}
              </span>
              <span class="grow long">
                <Prose text={[action.replaceAll("_", " "), subject].filter(Boolean).join(" ")} />
                {why !== null && `: ${why}`}
              </span>
              <span class="dim">
                {whoText(who)}, {role}
              </span>
              <When at={at} />
            </li>
          ))}
        </ul>
      </Section>
    </>
  );
}
