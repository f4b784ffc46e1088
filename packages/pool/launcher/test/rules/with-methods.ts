import { type Driver, decorate, type Provider, type ProviderConfig } from "@nodeyard/driver";

/** A driver whose providers have these methods in place of theirs; `methods` is given the provider as the driver opens it. */
export function withMethods(
  methods: (inner: Provider, config: ProviderConfig) => Partial<Provider>,
): (driver: Driver) => Driver {
  return (driver) => ({
    ...driver,
    open: async (config, context) => {
      const inner = await driver.open(config, context);
      return { ...decorate(inner, (_name, call) => call()), ...methods(inner, config) };
    },
  });
}
