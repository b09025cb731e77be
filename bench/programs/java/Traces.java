// SPDX-License-Identifier: Apache-2.0
import java.io.FileOutputStream;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.util.concurrent.CountDownLatch;

/** What is monitored, and nothing else: MooBench's method. */
final class Monitored {
    private Monitored() {
    }

    static int call(final int x, final int depth, final long methodNs) {
        final int result;

        if (depth > 1) {
            result = Monitored.call(x, depth - 1, methodNs);
        } else {
            final long end = System.nanoTime() + methodNs;

            while (System.nanoTime() < end) {
                Thread.onSpinWait();
            }
            result = x;
        }
        return result ^ result >>> 3 ^ depth;
    }
}

/**
 * What bench/programs/traces.c is, in Java; same arguments, same lines, same file. CPU and ADDED_NS are not heeded.
 *
 *     java Traces CALLS DEPTH METHOD_NS THREADS each|whole CPU ADDED_NS FILE
 */
public final class Traces {
    private static final int PART = 1 << 16;

    private final int calls;
    private final int depth;
    private final long methodNs;
    private final int[] spent;
    private final CountDownLatch start;
    private long startNs;
    private long halfNs;
    private long endNs;
    private long cpuNs;
    private int x;

    private Traces(final String[] words, final CountDownLatch start) {
        this.calls = Integer.parseInt(words[0]);
        this.depth = Integer.parseInt(words[1]);
        this.methodNs = Long.parseLong(words[2]);
        this.spent = "each".equals(words[4]) ? new int[this.calls] : null;
        this.start = start;
    }

    private void callTimed(final int from, final int to) {
        for (int i = from; i < to; i++) {
            final long before = System.nanoTime();

            this.x = Monitored.call(this.x, this.depth, this.methodNs);
            this.spent[i] = (int) Math.min(System.nanoTime() - before, 0xffffffffL);
        }
    }

    private void callUntimed(final int from, final int to) {
        for (int i = from; i < to; i++) {
            this.x = Monitored.call(this.x, this.depth, this.methodNs);
        }
    }

    private void callAll(final int from, final int to) {
        if (this.spent != null) {
            callTimed(from, to);
        } else {
            callUntimed(from, to);
        }
    }

    private void run() {
        final long cpu;

        this.start.countDown();
        try {
            this.start.await();
        } catch (final InterruptedException gone) {
            return;
        }
        cpu = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime();
        this.startNs = System.nanoTime();
        callAll(0, this.calls / 2);
        this.halfNs = System.nanoTime();
        callAll(this.calls / 2, this.calls);
        this.endNs = System.nanoTime();
        this.cpuNs = ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime() - cpu;
    }

    private void leave(final FileChannel out) throws IOException {
        final ByteBuffer buffer = ByteBuffer.allocate(8 + 4 * PART).order(ByteOrder.LITTLE_ENDIAN);

        buffer.putLong(this.calls);
        for (int i = 0; i < this.calls; i++) {
            buffer.putInt(this.spent[i]);
            if (i % PART == PART - 1 || i == this.calls - 1) {
                buffer.flip();
                while (buffer.hasRemaining()) {
                    out.write(buffer);
                }
                buffer.clear();
            }
        }
    }

    private static void tell(final Traces[] callers) {
        long startNs = Long.MAX_VALUE;
        long endNs = Long.MIN_VALUE;
        long wallNs = 0;
        long cpuNs = 0;

        for (final Traces caller : callers) {
            startNs = Math.min(startNs, caller.startNs);
            endNs = Math.max(endNs, caller.endNs);
            wallNs = Math.max(wallNs, caller.endNs - caller.halfNs);
            cpuNs += caller.cpuNs;
        }
        System.out.println("wall " + wallNs);
        System.out.println("cpu " + cpuNs);
        System.out.println("all " + (endNs - startNs) + " 0");
    }

    public static void main(final String[] words) throws Exception {
        final int count = Integer.parseInt(words[3]);
        final CountDownLatch start = new CountDownLatch(count);
        final Traces[] callers = new Traces[count];
        final Thread[] threads = new Thread[count];
        final boolean[] hasOverflown = new boolean[1];

        for (int i = 0; i < count; i++) {
            final Traces caller = new Traces(words, start);

            callers[i] = caller;
            threads[i] = new Thread(caller::run, "caller-" + i);
            threads[i].setUncaughtExceptionHandler((thread, error) -> hasOverflown[0] |= error instanceof StackOverflowError);
            threads[i].start();
        }
        for (final Thread thread : threads) {
            thread.join();
        }
        if (hasOverflown[0]) {
            System.err.println("Traces: the JVM's stack does not hold depth " + words[1] + ": use a smaller --depth");
            System.exit(1);
        }
        tell(callers);
        if (callers[0].spent != null) {
            try (FileOutputStream file = new FileOutputStream(words[7])) {
                for (final Traces caller : callers) {
                    caller.leave(file.getChannel());
                }
            }
        }
        if (callers[0].x == 1 && callers[0].cpuNs < 0) {
            System.err.println("never"); // x is used
        }
    }
}
