/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What C++ does to call trees: templates (one function per set of arguments), exceptions (thrown through instrumented
 * frames, caught at different depths, rethrown, with destructors run on the way), virtual calls, recursion, and a thread
 * pool. Deterministic but for which thread does which task, which no call tree shows.
 */
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <vector>

namespace pool
{

template <typename T> class Queue
{
  public:
    void push(T item)
    {
        std::lock_guard<std::mutex> guard(lock_);
        items_.push_back(std::move(item));
        changed_.notify_one();
    }

    /* False once the queue is closed and empty. */
    bool pop(T &item)
    {
        std::unique_lock<std::mutex> guard(lock_);
        while (items_.empty() && !closed_)
            changed_.wait(guard);
        if (items_.empty())
            return false;
        item = std::move(items_.front());
        items_.pop_front();
        return true;
    }

    void close()
    {
        std::lock_guard<std::mutex> guard(lock_);
        closed_ = true;
        changed_.notify_all();
    }

  private:
    std::mutex lock_;
    std::condition_variable changed_;
    std::deque<T> items_;
    bool closed_ = false;
};

template <typename Call> class Pool
{
  public:
    explicit Pool(unsigned threads)
    {
        for (unsigned i = 0; i < threads; i++)
            threads_.emplace_back(&Pool::work, this);
    }

    ~Pool()
    {
        queue_.close();
        for (std::thread &thread : threads_)
            thread.join();
    }

    void submit(Call call)
    {
        queue_.push(std::move(call));
    }

  private:
    /* The bottom frame of each thread of the pool: an outer frame. */
    void work()
    {
        Call call{};
        while (queue_.pop(call))
            call();
    }

    Queue<Call> queue_;
    std::vector<std::thread> threads_;
};

} // namespace pool

namespace work
{

struct Mild : std::runtime_error {
    explicit Mild(const char *what) : std::runtime_error(what)
    {
    }
};
struct Severe : std::runtime_error {
    explicit Severe(const char *what) : std::runtime_error(what)
    {
    }
};

enum class Trouble { None, Mild, Severe, Grows };

/* Shows in every tree, also where an exception passes. */
class Guard
{
  public:
    explicit Guard(int &depth) : depth_(depth)
    {
        depth_++;
    }
    ~Guard()
    {
        depth_--;
    }

  private:
    int &depth_;
};

void fall(Trouble trouble)
{
    if (trouble == Trouble::Severe)
        throw Severe("severe");
    if (trouble != Trouble::None)
        throw Mild("mild");
}

void recover()
{
}

/* A chain of Depth functions, one per template argument. descend<2> catches what is mild, descend<3> makes it worse. */
template <int Depth> void descend(Trouble trouble, int &depth)
{
    Guard guard(depth);
    if constexpr (Depth == 2) {
        try {
            descend<Depth - 1>(trouble, depth);
        } catch (const Mild &) {
            recover();
            if (trouble == Trouble::Grows)
                throw;
        }
    } else if constexpr (Depth == 3) {
        try {
            descend<Depth - 1>(trouble, depth);
        } catch (const Mild &) {
            fall(Trouble::Severe);
        }
    } else {
        descend<Depth - 1>(trouble, depth);
    }
}

template <> void descend<0>(Trouble trouble, int &)
{
    fall(trouble);
}

template <typename T> T add(T left, T right)
{
    return static_cast<T>(left + right);
}

template <typename T> T sum(const std::vector<T> &values)
{
    T total{};
    for (const T &value : values)
        total = add(total, value);
    return total;
}

class Shape
{
  public:
    virtual ~Shape() = default;
    virtual double area() const = 0;
};

class Square final : public Shape
{
  public:
    double area() const override
    {
        return 4.0;
    }
};

class Tower final : public Shape
{
  public:
    explicit Tower(int floors) : floors_(floors)
    {
    }
    double area() const override
    {
        return floors_ == 0 ? 1.0 : Tower(floors_ - 1).area();
    }

  private:
    int floors_;
};

double measure(const Shape &shape)
{
    return shape.area();
}

/* The entry point of the pool's threads. Nothing leaves it. */
struct Task {
    int number;
    int *failures; /* one per task */

    void operator()() const
    {
        int depth = 0;
        try {
            run(depth);
        } catch (const Severe &) {
            failures[number]++;
        }
        if (depth != 0) /* a destructor was left out */
            std::abort();
    }

    void run(int &depth) const
    {
        switch (number % 7) {
        case 0:
            sum(std::vector<int>{1, 2, 3});
            break;
        case 1:
            sum(std::vector<double>{1.5, 2.5});
            break;
        case 2:
            measure(Square());
            measure(Tower(2));
            break;
        case 3:
            descend<4>(Trouble::None, depth);
            break;
        case 4:
            descend<4>(Trouble::Mild, depth);
            break;
        case 5:
            descend<4>(Trouble::Severe, depth);
            break;
        default:
            descend<4>(Trouble::Grows, depth);
            break;
        }
    }
};

} // namespace work

int main(int argc, char **argv)
{
    int count = argc > 1 ? std::atoi(argv[1]) : 70;
    std::unique_ptr<int[]> failures(new int[static_cast<size_t>(count)]());
    int failed = 0;

    {
        pool::Pool<work::Task> threads(3);
        for (int i = 0; i < count; i++)
            threads.submit({i, failures.get()});
    }
    for (int i = 0; i < count; i++)
        failed += failures[static_cast<size_t>(i)];
    std::printf("%d tasks, %d failed\n", count, failed);
    return 0;
}
