import type { ReadableSpan } from "@opentelemetry/sdk-trace";
import { errorClass } from "../errors.ts";
import type { Span } from "../span.ts";

/** The environment asks for traces, but OpenTelemetry's packages are not installed. */
export class NoOpenTelemetry extends errorClass("telemetry.no_opentelemetry") {}

/** Sends spans to a collector. */
export interface TraceExport {
  /** Never blocks. Spans that the collector does not accept in time are dropped. */
  readonly emit: (span: Span) => void;
  /** Sends the remaining spans. Never rejects. */
  close(): Promise<void>;
}

/** OpenTelemetry's variables for the address of the collector. Traces are exported when one of them is set. */
const WANTED = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];
const PACKAGES = "@opentelemetry/sdk-trace @opentelemetry/exporter-trace-otlp-http @opentelemetry/resources";
/** Values of OpenTelemetry's enumerations: span kind "internal", trace flag "sampled", status codes "unset" and "error". */
const [INTERNAL, SAMPLED, UNSET, ERROR] = [0, 1, 0, 2] as const;

/**
 * Opens OpenTelemetry's exporter (OTLP over HTTP), which reads its further variables itself. Undefined when the environment names no
 * collector. Rejects with NoOpenTelemetry.
 */
export async function openTraces(
  env: Readonly<Record<string, string | undefined>>,
  service: { readonly name: string; readonly version: string; readonly hostname: string },
): Promise<TraceExport | undefined> {
  if (!WANTED.some((name) => env[name])) return undefined;
  const [sdk, otlp, resources] = await Promise.all([
    import("@opentelemetry/sdk-trace"),
    import("@opentelemetry/exporter-trace-otlp-http"),
    import("@opentelemetry/resources"),
  ]).catch((cause: unknown) => {
    throw new NoOpenTelemetry(
      `${WANTED[0]} asks for traces, and the packages for them are not installed: run npm install -g ${PACKAGES} (with --prefix /usr for a Debian package), or unset it`,
      { cause },
    );
  });
  const { defaultResource, detectResources, envDetector, resourceFromAttributes } = resources;
  const own = {
    "service.name": service.name,
    "service.version": service.version,
    "host.name": service.hostname,
  };
  const resource = defaultResource()
    .merge(resourceFromAttributes(own))
    .merge(detectResources({ detectors: [envDetector] }));
  const processor = new sdk.BatchSpanProcessor({ exporter: new otlp.OTLPTraceExporter() });
  const context = (traceId: string, spanId: string) => ({ traceId, spanId, traceFlags: SAMPLED });
  return {
    emit({ trace, id, parent, name, start, end, attributes, error }) {
      const span: ReadableSpan = {
        name,
        kind: INTERNAL,
        spanContext: () => context(trace, id),
        ...(parent !== undefined && { parentSpanContext: context(trace, parent) }),
        startTime: hrTime(start),
        endTime: hrTime(end),
        duration: hrTime(Math.max(0, end - start)),
        status: error === undefined ? { code: UNSET } : { code: ERROR, message: error },
        attributes,
        links: [],
        events: [],
        ended: true,
        resource,
        instrumentationScope: { name: service.name, version: service.version },
        droppedAttributesCount: 0,
        droppedEventsCount: 0,
        droppedLinksCount: 0,
      };
      processor.onEnd(span);
    },
    close: () => processor.shutdown().catch(() => {}),
  };
}

/** OpenTelemetry's form of a time: seconds and nanoseconds. */
function hrTime(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1000);
  return [seconds, Math.round((ms - seconds * 1000) * 1e6)];
}
