/** Returns the seconds that each of a number of calls of an operation takes. */
export async function secondsEach(times, operation) {
  // Without this an operation would include the time to collect the garbage of others.
  globalThis.gc?.(); // exists with node --expose-gc
  const each = [];
  for (let i = 0; i < times; i++) {
    const start = performance.now();
    await operation();
    each.push((performance.now() - start) / 1000);
  }
  return each;
}

/** Returns the seconds of an operation, and those that processors worked for it, the garbage collector's threads included. */
export async function spent(operation) {
  globalThis.gc?.();
  const before = process.cpuUsage();
  const start = performance.now();
  await operation();
  const seconds = (performance.now() - start) / 1000;
  const { user, system } = process.cpuUsage(before);
  return { seconds, cpu: (user + system) / 1e6 };
}

export const seconds = async (operation) => (await spent(operation)).seconds;
