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

export const seconds = async (operation) => (await secondsEach(1, operation))[0];
