package reactor

func platformEngine(cfg Config) (engine, error) { panic("not yet") }
