set -ex
git clone -q git://git.example/job.git
cd job
make -s -j
dockerd >dockerd.log 2>&1 &
timeout 60 sh -c 'until docker version; do sleep 1; done' >/dev/null 2>&1
docker build -q -t hello .
docker run --rm hello
tail /dev/zero
