// Command judge plays a scale set with GitHub's own client against the double: each call of the double that a connector uses is answered as
// that client expects, or it fails.
package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/actions/scaleset"
	"github.com/actions/scaleset/listener"
)

type scaler struct {
	client  *scaleset.Client
	set     int
	done    context.CancelFunc
	started int
	desired int
}

func (s *scaler) HandleJobStarted(_ context.Context, job *scaleset.JobStarted) error {
	s.started++
	if job.RunnerName == "" || job.JobID == "" {
		return fmt.Errorf("a job without a name or runner: %+v", job)
	}
	return nil
}

func (s *scaler) HandleJobCompleted(_ context.Context, job *scaleset.JobCompleted) error {
	if job.Result != "succeeded" {
		return fmt.Errorf("a job ended with %q", job.Result)
	}
	s.done()
	return nil
}

func (s *scaler) HandleDesiredRunnerCount(ctx context.Context, count int) (int, error) {
	if count > 0 && s.desired == 0 {
		s.desired = count
		config, err := s.client.GenerateJitRunnerConfig(ctx, &scaleset.RunnerScaleSetJitRunnerSetting{Name: "judge-1", WorkFolder: "_work"}, s.set)
		if err != nil {
			return 0, err
		}
		if _, err := base64.StdEncoding.DecodeString(config.EncodedJITConfig); err != nil {
			return 0, err
		}
		// What the double's door for runners reads.
		fmt.Println(config.EncodedJITConfig)
		_, err = s.client.GenerateJitRunnerConfig(ctx, &scaleset.RunnerScaleSetJitRunnerSetting{Name: "judge-1"}, s.set)
		if !errors.Is(err, scaleset.RunnerExistsError) {
			return 0, fmt.Errorf("a second runner of one name: %v", err)
		}
		found, err := s.client.GetRunnerByName(ctx, "judge-1")
		if err != nil || found == nil || found.ID != config.Runner.ID {
			return 0, fmt.Errorf("the runner by its name: %+v, %v", found, err)
		}
	}
	return count, nil
}

func run() error {
	ctx, done := context.WithTimeout(context.Background(), time.Minute)
	defer done()
	info := scaleset.SystemInfo{System: "judge", Subsystem: "test", Version: "1"}
	client, err := scaleset.NewClientWithPersonalAccessToken(scaleset.NewClientWithPersonalAccessTokenConfig{
		GitHubConfigURL: os.Args[1] + "/org/repo", PersonalAccessToken: os.Args[2], SystemInfo: info,
	})
	if err != nil {
		return err
	}
	group, err := client.GetRunnerGroupByName(ctx, scaleset.DefaultRunnerGroup)
	if err != nil {
		return err
	}
	made, err := client.CreateRunnerScaleSet(ctx, &scaleset.RunnerScaleSet{Name: "judged", RunnerGroupID: group.ID})
	if err != nil {
		return err
	}
	found, err := client.GetRunnerScaleSet(ctx, group.ID, "judged")
	if err != nil || found == nil || found.ID != made.ID {
		return fmt.Errorf("the set by its name: %+v, %v", found, err)
	}
	session, err := client.MessageSessionClient(ctx, made.ID, "judge")
	if err != nil {
		return err
	}
	second, err := client.MessageSessionClient(ctx, made.ID, "judge", scaleset.WithRetryMax(0))
	if err == nil {
		return fmt.Errorf("a second session was opened: %v", second)
	}
	follow, err := listener.New(session, listener.Config{ScaleSetID: made.ID, MaxRunners: 5, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	player := &scaler{client: client, set: made.ID, done: done}
	if err := follow.Run(ctx, player); !errors.Is(err, context.Canceled) && player.started == 0 {
		return err
	}
	if player.started != 1 || player.desired != 1 {
		return fmt.Errorf("%d jobs started, %d runners desired", player.started, player.desired)
	}
	after := context.Background()
	if _, err := client.GetRunner(after, 1); err == nil {
		return errors.New("a runner is there after its job")
	}
	if err := session.Close(after); err != nil {
		return err
	}
	return client.DeleteRunnerScaleSet(after, made.ID)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
